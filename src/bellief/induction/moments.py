"""Backwards induction on mean and variance of values, with optimism inside: plans for a belief that learns its prior.

A step back computes, for every pair, the mean and the variance of r + discount * V(s') over the posterior, and chooses
in every state the action with the largest mean + optimism * sd; both moments of that action are what the step before
sees. So uncertainty far away is carried back to where it can be resolved, variances add along a way (not
deviations), and nothing is sampled.

The variance has three parts, as in the uncertainty Bellman equation (O'Donoghue et al. 2018, Luis et al. 2023): of the
mean reward; of the row, a Dirichlet mixed over its weight, about the present mean values; and of the next state's
value. Deviation from Luis et al.: the covariance between row and next values is left out, so that no ensemble of MDPs
is needed. Without cycles the variance is then an upper bound where theirs is exact; where a pair is met again and
again it is too small, as theirs is, because every visit counts as a new pair.

Three things make up for that; with L the largest absolute reward so far:

- What a pair pays on outcomes that it has not shown is unknown, even if others are known: with u their share of
  the row, E[u^2] L^2 is part of the variance of its mean reward (`learned_rows.unseen_squares`). The belief about
  rewards does not say that, since it knows of pairs only. In a deterministic task u is small after one visit.
- A pair that was not seen to stay where it is may do so, and then pays its unknown reward at every step: the second
  moment of these later payments is part of its variance (`learned_rows.self_loops`). The first payment is in the term
  above, and for a pair never tried in its prior variance; the covariance of both is left out.
- An unseen outcome carries the average variance of the states met so far, not of all. A pair never tried has the
  variance of the second term, and most pairs of states that were never met have it: counting these states would make
  every pair uncertain as long as there are some, and there may always be, since not all need be reachable.

Without the second, an agent that was unlucky at the one visit of the best pair of NChain never tries it again; without
the first, the third makes agents on RiverSwim stay at the poor end.

>>> import jax.numpy as jnp
>>> from bellief.beliefs import learned
>>> from bellief.induction import moments
>>> from bellief.types import Spaces
>>> belief = learned.init(Spaces(2, 2, terminates=False, reward_low=None, reward_high=None))
>>> problem = moments.prepare(belief, slots=2, discount=0.5)
>>> step = moments.back_up(problem, jnp.array([1.0, 3.0]), jnp.zeros(2), discount=0.5)
>>> step.mean.tolist(), type(step).__name__, type(problem).__name__  # nowhere known: the mean of both
([[1.0, 1.0], [1.0, 1.0]], 'Moments', 'Problem')
>>> start = moments.Values(jnp.zeros(2), jnp.zeros(2))
>>> moments.solve(jnp.zeros((2, 2)), problem, start, 0.5, 1.0, 1e-3, 50).sweeps.item() < 50
True
>>> moments.by_size(belief, lambda slots: slots), moments.Solution._fields
(2, ('actions', 'values', 'sweeps'))
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bellief.beliefs import learned, learned_noise, learned_rows


class Problem(NamedTuple):
    """The belief as the induction needs it: seen outcomes with their share of all visits; mean and variance of what a
    pair pays, with the terms for unseen outcomes; the outcomes met so far, with equal weights.
    """

    outcome: Int[Array, "S A K"]
    frequency: Float[Array, "S A K"]
    shares: learned_rows.Shares
    reward: Float[Array, "S A"]
    reward_variance: Float[Array, "S A"]
    met: Float[Array, "O"]
    ends: Float[Array, "e"]


class Values(NamedTuple):
    """Mean and variance of every state's value."""

    mean: Float[Array, "S"]
    variance: Float[Array, "S"]


class Moments(NamedTuple):
    """Mean and variance of every pair's value."""

    mean: Float[Array, "S A"]
    variance: Float[Array, "S A"]


class Solution(NamedTuple):
    """Chosen actions, the values they have, and how many steps back were taken."""

    actions: Int[Array, "S"]
    values: Values
    sweeps: Int[Array, ""]


def prepare(belief: learned.Belief, slots: int, discount: float) -> Problem:
    """What does not change during the induction; no pair may have shown more than `slots` outcomes."""
    rows = belief.rows
    reward, variance = learned_noise.posterior(belief.rewards)
    visits = rows.visits.astype(reward.dtype)
    frequency = rows.count[..., :slots] / jnp.maximum(visits, 1)[..., None]
    possible = learned.outcomes(belief)
    unseen = jnp.where(rows.visits > 0, learned_rows.unseen_squares(rows, possible), 0)
    unknown = (unseen + learned_rows.self_loops(rows, possible, discount)) * belief.rewards.largest**2
    met = jnp.concatenate([jnp.any(rows.visits > 0, axis=-1).astype(reward.dtype), jnp.ones_like(belief.ends)])
    return Problem(
        rows.outcome[..., :slots],
        frequency,
        learned_rows.shares(rows),
        reward,
        variance + unknown,
        met / jnp.maximum(jnp.sum(met), 1),
        belief.ends,
    )


def back_up(problem: Problem, mean: Float[Array, "S"], variance: Float[Array, "S"], discount: float) -> Moments:
    """Mean and variance of r + discount * V(s') for every pair.

    With e the average of V over a row's observations, v over all outcomes, and l the prior's share of the row, the
    mean of the row's V is (1 - l) e + l v; its variance given the weight is s = 1 / (n + w + 1) times that of V under
    the row. Both are averaged over the weight exactly.
    """
    # The end is one more outcome, worth nothing.
    ended = jnp.zeros(problem.ends.shape, mean.dtype)
    means, variances = jnp.concatenate([mean, ended]), jnp.concatenate([variance, ended])
    # About a centre, so that in single precision little is lost when squares are subtracted.
    centre = jnp.mean(means)
    means = means - centre
    table = jnp.stack([means, means**2, variances], axis=-1)
    seen = jnp.einsum("sak,sakm->sam", problem.frequency, table[problem.outcome])
    overall = jnp.mean(table[:, :2], axis=0)
    # A pair that was never tried has no observations; there the prior's share is one, and what is seen drops out.
    first, second = seen[..., 0], seen[..., 1]
    gap, square_gap = overall[0] - first, overall[1] - second
    share = problem.shares
    spread, spread_prior, spread_square = share.spread
    within = spread * (second - first**2) + spread_prior * (square_gap - 2 * first * gap) - spread_square * gap**2
    prior = share.prior
    # Without observations `first` is the centre; its share is zero.
    expected = centre + first + prior * gap
    carried = seen[..., 2] + prior * (problem.met @ variances - seen[..., 2])
    local = jnp.maximum(within, 0) + share.prior_variance * gap**2
    return Moments(
        problem.reward + discount * expected,
        problem.reward_variance + discount**2 * (local + carried),
    )


def solve(
    ties: Float[Array, "S A"],
    problem: Problem,
    start: Values,
    discount: float,
    optimism: float,
    tolerance: Float[Array, ""] | float,
    most: int,
) -> Solution:
    """Steps back from `start` until neither the mean nor the deviation of a value moves by more than the tolerance.

    Each step is a contraction for given actions, but the actions may alternate where two scores are all but equal;
    `most` bounds the steps. `ties` are small random numbers in [0, 1).
    """
    states = jnp.arange(start.mean.shape[0])

    def unfinished(carry):
        _, _, moved, sweeps = carry
        return (moved > tolerance) & (sweeps < most)

    def sweep(carry):
        values, _, _, sweeps = carry
        pairs = back_up(problem, values.mean, values.variance, discount)
        scores = pairs.mean + optimism * jnp.sqrt(pairs.variance)
        best = jnp.max(scores, axis=-1, keepdims=True)
        # Scores that differ by rounding only are equal.
        equal = scores >= best - 1e-6 * (1 + jnp.abs(best))
        actions = jnp.argmax(jnp.where(equal, ties, -1), axis=-1).astype(jnp.int32)
        new = Values(pairs.mean[states, actions], pairs.variance[states, actions])
        moved = jnp.maximum(
            jnp.max(jnp.abs(new.mean - values.mean)),
            jnp.max(jnp.abs(jnp.sqrt(new.variance) - jnp.sqrt(values.variance))),
        )
        return new, actions, moved, sweeps + 1

    nothing = jnp.zeros(start.mean.shape, jnp.int32)
    first = (start, nothing, jnp.asarray(jnp.inf, start.mean.dtype), jnp.array(0, jnp.int32))
    values, actions, _, sweeps = jax.lax.while_loop(unfinished, sweep, first)
    return Solution(actions, values, sweeps)


def by_size(belief: learned.Belief, function: Callable[[int], Any]) -> Any:
    """`function(slots)` for the smallest number of slots that holds every row: a branch for each size."""
    sizes = learned.sizes(belief)
    if len(sizes) == 1:
        return function(sizes[0])
    place = jnp.searchsorted(jnp.asarray(sizes), learned_rows.used(belief.rows))
    return jax.lax.switch(place, [lambda size=size: function(size) for size in sizes])
