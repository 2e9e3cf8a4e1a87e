"""Preposterior simulation: how much surer would more data of the same kind make us?

Draw a world from the posterior, let it produce further data, update the belief, and see how sure that belief would be
of the better policy. Averaged over worlds and data, this is the probability of choosing the right policy after so many
more transitions, as the present posterior sees it; more data can only raise it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.evaluation.problem import Problem
from bellief.offline.worlds import Counts, World, combine, counts_of, draw, start_values

# Sizes that are tried, as multiples of the log so far.
FACTORS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256)
SMALLEST_STEP = 20

# Beyond so many states simulations are left out unless asked for: each of them draws and solves hundreds of MDPs.
MOST_STATES = 150


class Forecast(NamedTuple):
    """Chance of choosing the best policy after more transitions, with the standard error over simulated worlds.

    >>> from bellief.decisions.preposterior import Forecast
    >>> Forecast(transitions=100, chance=0.9, error=0.02).chance
    0.9
    """

    transitions: int
    chance: float
    error: float


def forecasts(
    problem: Problem,
    policies: Float[np.ndarray, "P S A"],
    collector: Float[np.ndarray, "S A"],
    target: float,
    simulations: int,
    draws: int,
    seed: int,
) -> list[Forecast]:
    """The chance for growing amounts of data, up to the first that reaches the target."""
    counts, prior = counts_of(problem), problem.prior
    worlds = draw(np.random.default_rng([seed, 0]), prior, counts, simulations, whole=True)
    found = []
    for more in _sizes(len(problem.log)):
        sure = np.empty(simulations)
        for number in range(simulations):
            generator = np.random.default_rng([seed, 1 + number, more])
            world = _one(worlds, number)
            updated = combine(counts, further_data(generator, world, more, problem, collector))
            values = start_values(draw(generator, prior, updated, draws), policies, problem)
            sure[number] = (np.bincount(values.argmax(-1), minlength=len(policies)) / draws).max()
        error = float(sure.std(ddof=1) / np.sqrt(simulations)) if simulations > 1 else float("nan")
        found.append(Forecast(more, float(sure.mean()), error))
        if found[-1].chance >= target:
            break
    return found


def _one(worlds: World, number: int) -> World:
    rewards = worlds.outcome_reward
    each = None if rewards is None else rewards[number]
    return World(worlds.rows[number], worlds.reward[number], worlds.reward_sd[number], each)


def needed(found: list[Forecast], target: float) -> int | None:
    """Further transitions until the chance reaches the target, interpolated on the scale of their logarithm."""
    if not found or found[-1].chance < target:
        return None
    if len(found) == 1:
        return found[0].transitions
    before, after = found[-2], found[-1]
    share = (target - before.chance) / max(after.chance - before.chance, 1e-12)
    size = np.exp(np.log(before.transitions) + share * (np.log(after.transitions) - np.log(before.transitions)))
    return round(float(size))


def _sizes(transitions: int) -> list[int]:
    return sorted({max(SMALLEST_STEP, round(factor * transitions)) for factor in FACTORS})


def further_data(generator, world: World, more: int, problem: Problem, collector) -> Counts:
    """Sufficient statistics of `more` transitions from a world.

    Visits of a pair are their expected number under the collecting policy, rounded at random; outcomes and rewards
    are drawn. The log's own rate of breaking off episodes is kept.
    """
    expected = more * average_time(world.rows, collector, problem, more)[:, None] * collector
    visits = np.floor(expected + generator.random(expected.shape)).astype(np.int64)
    outcomes = generator.multinomial(visits, world.rows)
    if world.outcome_reward is None:
        return Counts(outcomes, visits, *_moments(generator, visits, world.reward, world.reward_sd))
    mean, squares = _moments(generator, outcomes, world.outcome_reward, world.reward_sd[..., None])
    pair_mean = (outcomes * mean).sum(-1) / np.maximum(visits, 1)
    within = squares.sum(-1)
    between = (outcomes * (mean - pair_mean[..., None]) ** 2).sum(-1)
    return Counts(outcomes, visits, pair_mean, within + between, mean, within)


def _moments(generator, times: np.ndarray, centre: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and squared deviations of so many rewards; both zero where there are none."""
    mean = centre + spread * generator.normal(size=times.shape) / np.sqrt(np.maximum(times, 1))
    squares = spread**2 * np.where(times > 1, generator.chisquare(np.maximum(times - 1, 1)), 0)
    return np.where(times > 0, mean, 0), squares


def average_time(rows, collector, problem: Problem, steps: int) -> Float[np.ndarray, "S"]:
    """Average share of the first `steps` steps that are spent in each state, by doubling the number of steps."""
    log, states = problem.log, problem.log.states
    going_on = log.transitions - log.ends
    broken_off = min(max((log.episodes - 1 - log.ends) / going_on, 0.0), 1.0) if going_on else 0.0
    chain = np.einsum("sa,sat->st", collector, rows[..., :states]) * (1 - broken_off)
    chain = chain + (1 - chain.sum(-1, keepdims=True)) * problem.start
    average, power = problem.start, chain
    for _ in range(max(steps, 1).bit_length() - 1):
        average = (average + average @ power) / 2
        power = power @ power
        power /= power.sum(-1, keepdims=True)
    return average / average.sum()
