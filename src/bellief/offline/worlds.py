"""Draws of whole MDPs from the dense belief in NumPy.

The same conjugate posteriors as `beliefs.tabular`. Decisions ask small questions in many shapes (this policy against
that one, a few more observations), for which compiling takes longer than computing.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.beliefs.sparse import reward_parameters
from bellief.beliefs.tabular import Prior
from bellief.offline.outcomes import by_outcome
from bellief.offline.problem import Problem


class Counts(NamedTuple):
    """The dense belief's sufficient statistics. The last two, which only a prior with rewards by outcome needs: mean
    reward of each outcome, and what is left of a pair's squared deviations within its outcomes.
    """

    outcomes: Int[np.ndarray, "S A O"]
    visits: Int[np.ndarray, "S A"]
    mean: Float[np.ndarray, "S A"]
    squares: Float[np.ndarray, "S A"]
    outcome_mean: Float[np.ndarray, "S A O"] | None = None
    within: Float[np.ndarray, "S A"] | None = None


class World(NamedTuple):
    """An MDP, or a batch of them: rows (the end last, where episodes end), mean rewards, and spreads of rewards.

    Where rewards go with the outcome and data are to be made: each outcome's mean reward; the spread is then around
    those, and around the pair's mean elsewhere.
    """

    rows: Float[np.ndarray, "*batch S A O"]
    reward: Float[np.ndarray, "*batch S A"]
    reward_sd: Float[np.ndarray, "*batch S A"]
    outcome_reward: Float[np.ndarray, "*batch S A O"] | None = None


def counts_of(problem: Problem) -> Counts:
    """The statistics of the log."""
    log = problem.log
    outcomes, outcome_mean, within = by_outcome(log, problem.terminates)
    moments = np.zeros((2, log.states, log.actions))
    moments[:, log.pair_state, log.pair_action] = log.pair_mean, log.pair_squares
    mean, squares = moments
    return Counts(outcomes.astype(np.int64), log.visits(), mean, squares, outcome_mean, within)


def draw(generator: np.random.Generator, prior: Prior, counts: Counts, number: int, whole: bool = False) -> World:
    """So many MDPs from the posterior: Dirichlet rows and NormalGamma rewards, by pair or by outcome.

    `whole` worlds can make data: rewards that go with the outcome are drawn one by one.
    """
    weights = generator.standard_gamma(
        prior.concentration(counts.outcomes.shape[-1]) + counts.outcomes, size=(number, *counts.outcomes.shape)
    )
    total = weights.sum(-1, keepdims=True)
    rows = np.where(total > 0, weights, 1.0) / np.where(total > 0, total, counts.outcomes.shape[-1])
    if prior.outcome_strength is None:
        return World(rows, *_by_pair(generator, prior, counts, rows))
    return World(rows, *(_each_outcome if whole else _by_outcome)(generator, prior, counts, rows))


def _by_pair(generator, prior: Prior, counts: Counts, rows) -> tuple[np.ndarray, np.ndarray]:
    """Mean reward and spread of a single one, as in `beliefs.normal_gamma`."""
    centre, strength, shape, rate = reward_parameters(prior, counts.visits, counts.mean, counts.squares)
    precision = generator.standard_gamma(shape, size=(len(rows), *shape.shape)) / rate
    reward = centre + generator.standard_normal(precision.shape) / np.sqrt(strength * precision)
    return reward, 1 / np.sqrt(precision)


class OutcomeRewards(NamedTuple):
    """The posterior of rewards by outcome, in NumPy; fields as in `beliefs.outcomes.OutcomeBelief`."""

    location: Float[np.ndarray, "S A O"]
    share: Float[np.ndarray, "S A O"]
    strength: Float[np.ndarray, "S A O"]
    pair_location: Float[np.ndarray, "S A"]
    pair_strength: Float[np.ndarray, "S A"]
    shape: Float[np.ndarray, "S A"]
    rate: Float[np.ndarray, "S A"]

    def means(self) -> Float[np.ndarray, "S A O"]:
        """Posterior mean of each outcome's mean reward."""
        return self.location + self.share * self.pair_location[..., None]

    def width(self, rows: Float[np.ndarray, "*batch S A O"]) -> Float[np.ndarray, "*batch S A"]:
        """Variance of a pair's mean reward under given rows, in units of the noise's."""
        shared = np.einsum("...sao,sao->...sa", rows, self.share)
        return np.einsum("...sao,sao->...sa", rows**2, 1 / self.strength) + shared**2 / self.pair_strength


def outcome_rewards(prior: Prior, counts: Counts) -> OutcomeRewards:
    """As `beliefs.outcomes.posterior`."""
    each, seen, within = prior.outcome_strength, counts.outcome_mean, counts.within
    assert each is not None and seen is not None and within is not None  # noqa: PT018
    strength = each + counts.outcomes
    weight = each * counts.outcomes / strength
    pair_strength = prior.reward_strength + weight.sum(-1)
    gap = seen - prior.reward_mean
    pair_gap = (weight * gap).sum(-1) / pair_strength
    misfit = (weight * (gap - pair_gap[..., None]) ** 2).sum(-1) + prior.reward_strength * pair_gap**2
    return OutcomeRewards(
        location=seen * counts.outcomes / strength,
        share=each / strength,
        strength=strength,
        pair_location=prior.reward_mean + pair_gap,
        pair_strength=pair_strength,
        shape=prior.reward_shape + counts.visits / 2,
        rate=prior.reward_rate + (within + misfit) / 2,
    )


def _by_outcome(generator, prior: Prior, counts: Counts, rows) -> tuple[np.ndarray, np.ndarray]:
    """The same for rewards that depend on the outcome, as in `beliefs.outcomes.sample`."""
    belief = outcome_rewards(prior, counts)
    variance = belief.rate / generator.standard_gamma(belief.shape, size=rows.shape[:-1])
    means = belief.means()
    centre = np.einsum("nsao,sao->nsa", rows, means)
    reward = centre + np.sqrt(belief.width(rows) * variance) * generator.standard_normal(centre.shape)
    apart = np.einsum("nsao,sao->nsa", rows, means**2) - centre**2
    return reward, np.sqrt(np.maximum(apart, 0) + variance)


def _each_outcome(generator, prior: Prior, counts: Counts, rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with a draw of every outcome's mean, as in `beliefs.outcomes.sample_rewards`."""
    belief = outcome_rewards(prior, counts)
    noise = np.sqrt(belief.rate / generator.standard_gamma(belief.shape, size=rows.shape[:-1]))
    pair = belief.pair_location + noise / np.sqrt(belief.pair_strength) * generator.standard_normal(noise.shape)
    spread = noise[..., None] / np.sqrt(belief.strength)
    means = belief.location + belief.share * pair[..., None] + spread * generator.standard_normal(rows.shape)
    return (rows * means).sum(-1), noise, means


def start_values(worlds: World, policies: Float[np.ndarray, "P S A"], problem: Problem) -> Float[np.ndarray, "N P"]:
    """What each policy is worth from the start in each world."""
    return values_of(worlds, policies, problem) @ problem.start


def values_of(worlds: World, policies: Float[np.ndarray, "P S A"], problem: Problem) -> Float[np.ndarray, "N P S"]:
    """What each policy is worth in each world and state."""
    states = policies.shape[1]
    chain = problem.discount * np.einsum("psa,nsat->npst", policies, worlds.rows[..., :states], optimize=True)
    reward = np.einsum("psa,nsa->nps", policies, worlds.reward)
    if problem.horizon is None:
        return np.linalg.solve(np.eye(states) - chain, reward[..., None])[..., 0]
    values = np.zeros_like(reward)
    for _ in range(problem.horizon):
        values = reward + (chain @ values[..., None])[..., 0]
    return values


def combine(first: Counts, second: Counts) -> Counts:
    """Statistics of two sets of data together (Chan's formula); by outcome only where both have that."""
    visits = first.visits + second.visits
    mean, squares = _merge(first.visits, first.mean, second.visits, second.mean)
    outcomes, outcome_mean, within = first.outcomes + second.outcomes, None, None
    if first.outcome_mean is not None and second.outcome_mean is not None:
        assert first.within is not None
        assert second.within is not None
        outcome_mean, between = _merge(first.outcomes, first.outcome_mean, second.outcomes, second.outcome_mean)
        within = first.within + second.within + between.sum(-1)
    return Counts(outcomes, visits, mean, first.squares + second.squares + squares, outcome_mean, within)


def _merge(number, mean, other_number, other_mean) -> tuple[np.ndarray, np.ndarray]:
    """Mean of two sets together, and what squared deviations from it exceed those from the two means by."""
    share = other_number / np.maximum(number + other_number, 1)
    gap = other_mean - mean
    return mean + gap * share, gap**2 * number * share
