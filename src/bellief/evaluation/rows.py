"""The belief about transition rows, and draws from it: seen outcomes one by one, the rest in a few atoms.

A row is Dirichlet: each seen outcome has its count, and a prior weight w is spread over all O outcomes. A Dirichlet
row with parameters n + w b is a sum, made to have mass one, of gamma variates on the seen outcomes (shapes n) and of
one gamma variate (shape w) times a Dirichlet process with base measure b (Ferguson 1973). That process is a sequence
of atoms: sizes by breaking a stick at Beta(1, w) points, places from b (Sethuraman 1994). It is exact as atoms grow in
number and is cut where the expected mass beyond is below `REMAINDER`, so the cost of a row grows with what was seen of
it, not with the number of states. Where the prior weighs so much that this would take more atoms than there are
outcomes (the paper's prior), or where the possible outcomes are given, every possible outcome is a cell of its own.

>>> import numpy as np
>>> from bellief.evaluation import rows
>>> belief = rows.Rows(  # two rows; from the first one, outcome 1 was seen twice
...     row=np.arange(2), first=np.array([0, 1, 1]), outcome=np.array([1]), shape=np.array([2.0]),
...     rest=np.array([0.1, 0.1]), outcomes=3
... )
>>> drawn = rows.sample(belief, seed=0, draws=np.arange(4))
>>> drawn.cell_share.shape, bool(np.allclose(drawn.cell_share.sum(-1) + drawn.atom_share.sum(-1), 2))
((4, 1), True)
>>> chance, rest = rows.mean(belief)
>>> chance.round(3).tolist(), rest.round(3).tolist()
([0.952], [0.048, 1.0])
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.evaluation import noise

# Expected mass of a row beyond its atoms.
REMAINDER = 1e-6


class Rows(NamedTuple):
    """The belief about some rows. `row` are their numbers, state * actions + action.

    Row r has the cells first[r] to first[r + 1]: outcomes, ascending, and the gamma shapes that they have by themselves.
    `rest[r]` is the prior weight that is spread evenly over all `outcomes`, the seen ones included.
    """

    row: Int[np.ndarray, "R"]
    first: Int[np.ndarray, "R1"]
    outcome: Int[np.ndarray, "C"]
    shape: Float[np.ndarray, "C"]
    rest: Float[np.ndarray, "R"]
    outcomes: int

    def row_of_cell(self) -> Int[np.ndarray, "C"]:
        """Position of each cell's row."""
        return np.repeat(np.arange(len(self.row)), np.diff(self.first))


class Drawn(NamedTuple):
    """Rows in `n` draws: the mass on each cell, and atoms with their rows, places and masses.

    An atom that fell on a cell has given its mass to it, and one on the place of an earlier atom to that, so that every
    outcome of a row stands in one place.
    """

    cell_share: Float[np.ndarray, "n C"]
    atom_row: Int[np.ndarray, "T"]
    atom_outcome: Int[np.ndarray, "n T"]
    atom_share: Float[np.ndarray, "n T"]


def restrict(belief: Rows, rows: Int[np.ndarray, "r"]) -> tuple[Rows, Int[np.ndarray, "c"]]:
    """The belief about the rows at some positions, and the positions of their cells."""
    lengths = np.diff(belief.first)[rows]
    first = np.append(0, np.cumsum(lengths))
    cells = np.repeat(belief.first[rows] - first[:-1], lengths) + np.arange(first[-1])
    return (
        belief._replace(
            row=belief.row[rows],
            first=first,
            outcome=belief.outcome[cells],
            shape=belief.shape[cells],
            rest=belief.rest[rows],
        ),
        cells,
    )


def sums(values: Float[np.ndarray, "*n C"], first: Int[np.ndarray, "R1"]) -> Float[np.ndarray, "*n R"]:
    """Sums over the cells of each row; zero where it has none."""
    total = np.zeros((*values.shape[:-1], len(first) - 1))
    filled = np.flatnonzero(np.diff(first))
    if len(filled):
        total[..., filled] = np.add.reduceat(values, first[filled], axis=-1)
    return total


def mean(belief: Rows) -> tuple[Float[np.ndarray, "C"], Float[np.ndarray, "R"]]:
    """Expected mass of each cell by itself, and of what each row spreads evenly over all outcomes."""
    total = sums(belief.shape, belief.first) + belief.rest
    return belief.shape / np.repeat(total, np.diff(belief.first)), belief.rest / total


def atoms_needed(rest: Float[np.ndarray, "R"], seen: Float[np.ndarray, "R"]) -> Int[np.ndarray, "R"]:
    """How many atoms leave less than `REMAINDER` of a row's mass beyond them, in expectation."""
    rest = np.asarray(rest, np.float64)
    share = np.divide(rest, rest + seen, out=np.zeros_like(rest), where=rest > 0)
    with np.errstate(divide="ignore"):
        count = np.ceil(np.log(REMAINDER / np.maximum(share, 1e-300)) / np.log(rest / (1 + rest)))
    return np.where(rest > 0, np.maximum(count, 1), 0).astype(np.int64)


def sample(belief: Rows, seed: int, draws: Int[np.ndarray, "n"]) -> Drawn:
    """Draws of the rows; those of a row depend on nothing but the seed, the row and the draw."""
    lengths = np.diff(belief.first)
    cell_row = np.repeat(belief.row, lengths)
    cells = noise.gamma(belief.shape, noise.keys(seed, noise.CELL, cell_row, belief.outcome), draws)
    seen = sums(cells, belief.first)
    spread = np.flatnonzero(belief.rest > 0)
    count = atoms_needed(belief.rest[spread], sums(belief.shape, belief.first)[spread])
    rest = np.zeros_like(seen)
    rest[:, spread] = noise.gamma(belief.rest[spread], noise.keys(seed, noise.REST, belief.row[spread]), draws)
    # A row without cells consists of its atoms, however small the gamma variate is.
    rest[:, lengths == 0] = 1.0
    total = seen + rest
    cells /= np.repeat(total, lengths, axis=-1)
    atom_row = np.repeat(spread, count)
    size, place = _atoms(belief, seed, draws, spread, count)
    size *= (rest / total)[:, atom_row]
    _merge(belief, cells, atom_row, np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count), place, size)
    return Drawn(cells, atom_row, place, size)


def _atoms(belief: Rows, seed: int, draws, spread, count) -> tuple[Float[np.ndarray, "n T"], Int[np.ndarray, "n T"]]:
    """Sizes of the atoms of each row, which sum to one, and their places."""
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    row = np.repeat(belief.row[spread], count)
    # What is left of the stick after k breaks is a product of uniform numbers to the power 1 / w.
    left = np.log(noise.uniform(noise.keys(seed, noise.ATOM_SIZE, row, number), draws))
    left /= np.repeat(belief.rest[spread], count)
    for depth in range(1, int(count.max(initial=0))):
        here = np.flatnonzero(number == depth)
        left[:, here] += left[:, here - 1]
    np.exp(left, out=left)
    last = number == np.repeat(count, count) - 1
    left[:, last] = 0.0  # the last atom takes what would lie beyond
    size = -left
    size[:, number == 0] += 1
    inner = np.flatnonzero(number > 0)
    size[:, inner] += left[:, inner - 1]
    place = noise.uniform(noise.keys(seed, noise.ATOM_PLACE, row, number), draws)
    place *= belief.outcomes
    return size, place.astype(np.int64)


def _merge(belief: Rows, cells, atom_row, number, place, size) -> None:
    """Move the mass of atoms to the cell or the earlier atom of the same outcome, in place."""
    for depth in range(1, int(number.max(initial=0)) + 1):
        here = np.flatnonzero(number == depth)
        for earlier in range(depth):
            there = here - depth + earlier
            same = place[:, here] == place[:, there]
            if same.any():
                draw, column = np.nonzero(same)
                size[draw, there[column]] += size[draw, here[column]]
                size[draw, here[column]] = 0.0
    filled = np.flatnonzero((np.diff(belief.first) > 0)[atom_row])
    if not len(filled):
        return
    code = belief.row_of_cell() * belief.outcomes + belief.outcome
    wanted = atom_row[filled] * belief.outcomes + place[:, filled]
    found = np.minimum(np.searchsorted(code, wanted), len(code) - 1)
    draw, column = np.nonzero(code[found] == wanted)
    np.add.at(cells, (draw, found[draw, column]), size[draw, filled[column]])
    size[draw, filled[column]] = 0.0
