"""Moments of transition rows and of what they pay, as tables over outcomes, a chunk of rows at a time.

A row p of the belief is Dirichlet with mean m and total weight W (`evaluation.rows`), however its unseen mass is drawn.
For a number f(o) that each outcome has, with f centred so that its mean under m is zero and c_j the mean of f^j,

    E[(p f)^2] = c_2 / (W + 1),    E[(p f)^3] = 2 c_3 / ((W + 1)(W + 2)),
    E[(p f)^4] = (6 c_4 + 3 W c_2^2) / ((W + 1)(W + 2)(W + 3)),

which follow from E[(1 - t p f)^-W] = prod_o (1 - t f(o))^(-W m(o)).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.evaluation import rows
from bellief.evaluation.problem import Part

# Entries of a chunk's tables: small enough for a core's cache.
CHUNK = 1 << 18


class RowTables(NamedTuple):
    """Some rows: expected mass and expected reward of every outcome, and each row's weight.

    `noise` is the expected variance of the row's mean reward given its probabilities, `noise_excess` the fourth
    cumulant of that part; both are infinite where they do not exist.
    """

    rows: slice
    mean: Float[np.ndarray, "r O"]
    pay: Float[np.ndarray, "r O"]
    weight: Float[np.ndarray, "r"]
    noise: Float[np.ndarray, "r"]
    noise_excess: Float[np.ndarray, "r"]

    def centred(self, values: Float[np.ndarray, "r O"]) -> Float[np.ndarray, "r O"]:
        """Numbers of outcomes less their mean in each row."""
        return values - (self.mean * values).sum(-1, keepdims=True)


def row_tables(part: Part) -> Iterator[RowTables]:
    """All rows of a part, in order."""
    held, number = part.held, len(part.held.row)
    size = max(1, CHUNK // held.outcomes)
    chance, rest = rows.mean(held)
    weight = rows.sums(held.shape, held.first) + held.rest
    local = None
    if held.base is not None:
        local = held.base.table() if len(held.base.visits) * held.outcomes <= CHUNK else held.base.matrix()
    for begin in range(0, number, size):
        chunk = slice(begin, min(begin + size, number))
        cells = slice(held.first[chunk.start], held.first[chunk.stop])
        place = np.repeat(np.arange(chunk.stop - begin), np.diff(held.first[chunk.start : chunk.stop + 1]))
        mean = _spread(part, chunk, local) * rest[chunk, None]
        mean[place, held.outcome[cells]] += chance[cells]
        yield _with_rewards(part, chunk, cells, place, mean, weight[chunk])


def _spread(part: Part, chunk: slice, local) -> Float[np.ndarray, "r O"]:
    """The base measure of each row."""
    base, outcomes = part.held.base, part.held.outcomes
    if base is None:
        return np.full((chunk.stop - chunk.start, outcomes), 1 / outcomes)
    state = part.state[chunk]
    listed = local[state] if isinstance(local, np.ndarray) else local[state].toarray()
    return listed + base.elsewhere[state, None] * base.share


def _with_rewards(part: Part, chunk: slice, cells: slice, place, mean, weight) -> RowTables:
    belief, outcome = part.rewards, part.held.outcome[cells]
    location, strength, shape, rate = (field[chunk] for field in belief[:4])
    with np.errstate(divide="ignore"):
        variance = np.where(shape > 1, rate / np.maximum(shape - 1, 1e-300), np.inf)
        excess = np.where(shape > 2, 3 * variance**2 / np.maximum(shape - 2, 1e-300), np.inf)
    paid = belief.outcomes
    if paid is None:
        pay = np.broadcast_to(location[:, None], mean.shape)
        return RowTables(chunk, mean, pay, weight, variance / strength, excess / strength**2)
    level = np.zeros(mean.shape[1]) if belief.level is None else belief.level
    scale = np.ones(mean.shape[1]) if belief.scale is None else belief.scale
    shared = np.broadcast_to(scale, mean.shape).copy()
    own = np.broadcast_to(scale**2 / paid.unseen, mean.shape).copy()
    extra = np.zeros(mean.shape)
    shared[place, outcome] *= paid.share[cells]
    own[place, outcome] = scale[outcome] ** 2 / paid.strength[cells]
    extra[place, outcome] = scale[outcome] * paid.location[cells]
    pay = level + extra + shared * location[:, None]
    # The variance of the mean reward is v times: squares of probabilities, and the square of the pair's weight.
    square = mean * (weight[:, None] * mean + 1) / (weight[:, None] + 1)
    pair = (mean * shared).sum(-1)
    apart = ((mean * shared**2).sum(-1) - pair**2) / (weight + 1)
    width = (square * own).sum(-1) + (pair**2 + apart) / strength
    none = width == 0  # everything pays exactly its level
    variance[none], excess[none] = 0.0, 0.0
    return RowTables(chunk, mean, pay, weight, variance * width, excess * width**2)
