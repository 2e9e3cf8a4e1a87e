"""Transition rows whose prior weight is learned: Dirichlet rows, with the weight on a grid and its exact posterior.

A row's prior is Dirichlet(w / O, ..., w / O) over O outcomes: it weighs as much as w observations. The more
deterministic an environment, the smaller w; observations of every row are evidence about it. The
marginal likelihood of all observations given w is a product of Polya's urn probabilities, (count of the outcome + w /
O) / (count of the row + w), one factor an observation, so its logarithm for each w of the grid is kept up to date at
the cost of a few logarithms a step.

Rows are stored by the outcomes that were seen, so that large tables cost what is known of them.

>>> from bellief.beliefs import learned_rows
>>> rows = learned_rows.init(states=3, actions=1, outcomes=3, slots=2)
>>> for _ in range(20):  # always the same outcome
...     rows = learned_rows.update(rows, 0, 0, 2, outcomes=3)
>>> weights = learned_rows.weight_posterior(rows)
>>> bool(weights @ learned_rows.GRID < 0.2), rows.outcome[0, 0].tolist(), rows.count[0, 0].tolist()
(True, [2, 0], [20, 0])
>>> learned_rows.mean_table(rows, outcomes=3)[0, 0].round(2).tolist()
[0.0, 0.0, 1.0]
>>> type(learned_rows.shares(rows)).__name__, type(rows).__name__, int(learned_rows.used(rows))
('Shares', 'Rows', 1)
>>> loops = learned_rows.self_loops(rows, outcomes=3, discount=0.9)
>>> bool(loops[0, 0] < 0.01), bool(loops[1, 0] > 20)  # tried twenty times; never tried
(True, True)
>>> learned_rows.unseen_squares(rows, outcomes=3).round(2).tolist()
[[0.0], [1.0], [1.0]]
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

# Weights a row's prior may have; equally probable beforehand, which is log-uniform.
GRID = np.geomspace(1e-3, 100.0, 18)
# Visits up to which `self_loops` is exact.
MOST_VISITS = 64


class Rows(NamedTuple):
    """Outcomes seen of each pair with their counts (`K` slots, those with count zero are empty), visits of each pair,
    and the log marginal likelihood of each weight of the grid, less the largest.
    """

    outcome: Int[Array, "S A K"]
    count: Int[Array, "S A K"]  # type: ignore[assignment]  # a tuple has a method of that name
    visits: Int[Array, "S A"]
    evidence: Float[Array, "G"]


class Shares(NamedTuple):
    """Expectations over the weight w, given n visits: with s = 1 / (n + w + 1) and share l = w / (n + w) of the prior,
    `observation` is E[1 / (n + w)], `prior` E[l], `prior_variance` Var[l], `spread` E[s], E[s l] and E[s l^2].
    """

    observation: Float[Array, "S A"]
    prior: Float[Array, "S A"]
    prior_variance: Float[Array, "S A"]
    spread: tuple[Float[Array, "S A"], Float[Array, "S A"], Float[Array, "S A"]]


def init(states: int, actions: int, outcomes: int, slots: int | None = None) -> Rows:
    """No observations; `slots` bounds the different outcomes of a pair where that is known."""
    slots = outcomes if slots is None else min(slots, outcomes)
    empty = jnp.zeros((states, actions, slots), jnp.int32)
    return Rows(empty, empty, jnp.zeros((states, actions), jnp.int32), jnp.zeros(len(GRID), float))


def update(rows: Rows, state, action, outcome, outcomes: int) -> Rows:
    """Account for one observation."""
    place = (jnp.asarray(state), jnp.asarray(action))
    seen, counts = rows.outcome[place], rows.count[place]
    same = (seen == outcome) & (counts > 0)
    times = jnp.sum(jnp.where(same, counts, 0), dtype=counts.dtype)
    before = jnp.sum(counts, dtype=counts.dtype)
    # Neither number is ever negative. But where to write depends on all that is read, so XLA writes into the tables as
    # they are; else it copies them first, in case they are read later.
    slot = jnp.argmax(jnp.where(same, 2, counts == 0)) + (times < 0) + (before < 0)
    weight = jnp.asarray(GRID, rows.evidence.dtype)
    evidence = rows.evidence + jnp.log((times + weight / outcomes) / (before + weight))
    return Rows(
        rows.outcome.at[(*place, slot)].set(jnp.asarray(outcome, jnp.int32)),
        rows.count.at[(*place, slot)].set(times + 1),
        rows.visits.at[place].set(before + 1),
        # Only differences count; without this, sums over a million steps would lose their digits.
        evidence - jnp.max(evidence),
    )


def weight_posterior(rows: Rows) -> Float[Array, "G"]:
    """Probability of each weight of the grid."""
    return jax.nn.softmax(rows.evidence)


def used(rows: Rows) -> Int[Array, ""]:
    """The largest number of different outcomes that a pair has shown."""
    return jnp.max(jnp.sum(rows.count > 0, axis=-1))


def shares(rows: Rows) -> Shares:
    """What the weight's posterior says about every pair; see `Shares`."""
    posterior = weight_posterior(rows)
    weight = jnp.asarray(GRID, posterior.dtype)
    visits = rows.visits.astype(posterior.dtype)[..., None]
    prior = weight / (visits + weight)
    spread = 1 / (visits + weight + 1)
    average = prior @ posterior
    return Shares(
        (1 / (visits + weight)) @ posterior,
        average,
        ((prior - average[..., None]) ** 2) @ posterior,
        (spread @ posterior, (spread * prior) @ posterior, (spread * prior**2) @ posterior),
    )


def unseen_squares(rows: Rows, outcomes: int) -> Float[Array, "S A"]:
    """Expected square of the share of a row that its unseen outcomes have.

    Given the weight, the share of k unseen outcomes is Beta(k w / O, n + w - k w / O).
    """
    posterior = weight_posterior(rows)
    weight = jnp.asarray(GRID, posterior.dtype)
    unseen = (outcomes - jnp.sum(rows.count > 0, axis=-1)).astype(posterior.dtype)[..., None]
    own, total = unseen * weight / outcomes, rows.visits.astype(posterior.dtype)[..., None] + weight
    return (own * (own + 1) / (total * (total + 1))) @ posterior


def self_loops(rows: Rows, outcomes: int, discount: float) -> Float[Array, "S A"]:
    """How much an unknown reward of a pair may add to its value by leading back to the pair, where that was not seen.

    An action that pays r and then stays with probability x, each time it is chosen, pays r another discount * x / (1 -
    discount * x) times after the first. This is the expected square of that factor: x is Beta(w / O, n + w - w / O)
    given the weight, and the expectation is averaged over the weight. Deviation: above `MOST_VISITS` visits n it falls
    as 1 / n^2. Pairs that were seen to stay have 0, although how often they stay is uncertain too.
    """
    posterior = weight_posterior(rows)
    table = jnp.asarray(_stay_squares(outcomes, discount), posterior.dtype) @ posterior
    beyond = MOST_VISITS / jnp.maximum(rows.visits, MOST_VISITS).astype(posterior.dtype)
    states = jnp.arange(rows.visits.shape[0])[:, None, None]
    stayed = jnp.any((rows.outcome == states) & (rows.count > 0), axis=-1)
    return jnp.where(stayed, 0, table[jnp.minimum(rows.visits, MOST_VISITS)] * beyond**2)


@cache
def _stay_squares(outcomes: int, discount: float) -> np.ndarray:
    """E[(discount * x / (1 - discount * x))^2] of `self_loops`, indexed [visits, weight].

    The sum over k of (k + 1) discount^(k + 2) E[x^(k + 2)], whose terms are positive (SciPy's hypergeometric function
    overflows at some of these arguments).
    """
    own = GRID / outcomes
    total = np.arange(MOST_VISITS + 1)[:, None] + GRID
    term = discount**2 * own * (own + 1) / (total * (total + 1))
    square, number = np.zeros_like(term), 0
    # The terms fall at least as fast as discount^k (k + 1).
    while np.max(term / (square + term)) > 1e-6 * (1 - discount):
        square += term
        number += 1
        term = term * discount * (number + 1) / number * (own + 1 + number) / (total + 1 + number)
    return square


def mean_table(rows: Rows, outcomes: int) -> Float[Array, "S A O"]:
    """The mean row of every pair, written out."""
    share = shares(rows)
    states, actions, _ = rows.count.shape
    table = jnp.broadcast_to((share.prior / outcomes)[..., None], (states, actions, outcomes))
    mass = rows.count.astype(table.dtype) * share.observation[..., None]
    state, action, _ = np.indices(rows.count.shape)
    return table.at[state, action, rows.outcome].add(mass)
