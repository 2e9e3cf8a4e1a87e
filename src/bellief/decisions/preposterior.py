"""Preposterior analysis: by how much would more data of the same kind reduce the uncertainty?

Averaged over what further data may show, the probability of choosing the right policy after so many more transitions,
as the present posterior sees it; more data can only raise it. Two ways to it:

- `expected`: the Gaussian approximation of the preposterior mean (Raiffa and Schlaifer 1961; Jalal and Alarid-Escudero
  2018). Further visits remove the part of the values' covariance that the Dirichlet and normal posteriors of each pair
  say (`decisions.slopes`), and the draws are shrunk accordingly. Nothing is simulated.
- `simulated`: draw a world from the posterior, let it produce further data, update the belief, and compute the
  probability that the best policy then has. Exact up to the number of worlds, and slow.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.decisions import slopes
from bellief.decisions.collect import removed
from bellief.evaluation import rewards
from bellief.evaluation.problem import Problem
from bellief.evaluation.sampled import SampledMDPs
from bellief.logs import reward_moments
from bellief.logs.tally import Tally
from bellief.watch import pause_point

# Sizes that are tried, as multiples of the log so far.
FACTORS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256)
SMALLEST_STEP = 20

# Draws of the posterior means after the data, and of the values around each.
OUTER, INNER = 400, 1000


class Forecast(NamedTuple):
    """Chance of choosing the best policy after more transitions, with its Monte Carlo standard error.

    >>> from bellief.decisions.preposterior import Forecast
    >>> Forecast(transitions=100, chance=0.9, error=0.02).chance
    0.9
    """

    transitions: int
    chance: float
    error: float


def sizes(transitions: int) -> list[int]:
    """Numbers of further transitions that are tried."""
    return sorted({max(SMALLEST_STEP, round(factor * transitions)) for factor in FACTORS})


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


def expected(
    problem: Problem,
    policies: Float[np.ndarray, "P S A"],
    samples: Float[np.ndarray, "N P"],
    collector: Float[np.ndarray, "S A"],
    target: float,
    seed: int,
) -> list[Forecast]:
    """The chance for growing amounts of data, up to the first that reaches the target.

    What the posterior mean may become is distributed as the present draws, shrunk towards their mean to the part of
    their covariance that the data would remove; what is then left around it as the draws, shrunk to the other part.
    """
    centre, now = samples.mean(0), np.atleast_2d(np.cov(samples.T))
    left_after = _covariance_left(problem, policies, collector)
    total_inverse, root = np.linalg.pinv(_root(left_after(0)), hermitian=True), _root(now)
    inverse = np.linalg.pinv(root, hermitian=True)
    order = np.random.default_rng([seed, len(samples)]).permutation(len(samples))
    outer, inner = (samples[part] - centre for part in (order[:OUTER], order[-INNER:]))
    found: list[Forecast] = []
    chance = float(_share_best(samples).max())
    for more in sizes(len(problem.log)):
        pause_point()
        left = total_inverse @ left_after(more) @ total_inverse
        means = centre + outer @ (inverse @ _root(np.eye(len(left)) - left) @ root)
        values = means[:, None] + (inner @ (inverse @ _root(left) @ root))[None]
        sure = _share_best(values).max(-1)
        chance = max(chance, float(sure.mean()))  # on average, data never reduce the chance
        found.append(Forecast(more, chance, float(sure.std(ddof=1) / np.sqrt(len(outer)))))
        if found[-1].chance >= target:
            break
    return found


def _share_best(values: Float[np.ndarray, "*batch N P"]) -> Float[np.ndarray, "*batch P"]:
    """How often each policy has the highest value."""
    best = values.argmax(-1)
    return np.stack([(best == policy).mean(-1) for policy in range(values.shape[-1])], axis=-1)


def _covariance_left(problem: Problem, policies, collector):
    """A function from further transitions to the first-order covariance of the start values that would be left."""
    mdp, discount = problem.mean_mdp, problem.discount
    values = np.stack([mdp.values(policy, discount, problem.horizon) for policy in policies])[None]
    visits = np.stack([mdp.visits(policy, discount, problem.start, problem.horizon) for policy in policies])[None]
    rows = slopes.row_covariances(problem, slopes.moments(problem, values, visits))
    rows = rows * np.einsum("psa,qsa->pqsa", policies, policies)
    time = visits[0][..., None] * policies
    share = _time_share(problem, collector)[:, None] * collector

    def left(more: int) -> Float[np.ndarray, "P P"]:
        extra = more * share
        reward = slopes.reward_variances(problem, extra.ravel()).reshape(extra.shape)
        reward = np.where(time.any(0), np.where(np.isfinite(reward), reward, 0), 0)
        return (rows * (1 - removed(problem, extra))).sum((-1, -2)) + np.einsum("psa,qsa,sa->pq", time, time, reward)

    return left


def _time_share(problem: Problem, collector: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S"]:
    """Share of a policy's steps in each state; episodes break off as often as those of the log."""
    log = problem.log
    going_on = log.transitions - log.ends
    broken_off = (log.episodes - 1 - log.ends) / going_on if going_on else 1.0
    broken_off = min(max(broken_off, 1 / log.transitions), 0.999)
    visits = problem.mean_mdp.visits(collector, 1 - broken_off, problem.start, None)
    return visits / visits.sum()


def _root(matrix: np.ndarray) -> np.ndarray:
    """The symmetric root of a covariance matrix; directions that rounding made negative are taken as zero."""
    value, vector = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vector * np.sqrt(np.maximum(value, 0))) @ vector.T


def simulated(
    problem: Problem,
    policies: Float[np.ndarray, "P S A"],
    collector: Float[np.ndarray, "S A"],
    target: float,
    simulations: int,
    draws: int,
    seed: int,
) -> list[Forecast]:
    """The same by simulating worlds and their data."""
    worlds = draw_worlds(problem, seed, simulations)
    found = []
    for more in sizes(len(problem.log)):
        sure = np.empty(simulations)
        for number, world in enumerate(worlds):
            generator = np.random.default_rng([seed, 1 + number, more])
            further = further_data(generator, world, more, problem, collector)
            later = dataclasses.replace(problem, log=combine(problem.log, further))
            stream = int(generator.integers(2**32))
            values = problem.start_values(SampledMDPs(later, stream, draws).values(policies), stream)
            sure[number] = (np.bincount(values.argmax(-1), minlength=len(policies)) / draws).max()
        error = float(sure.std(ddof=1) / np.sqrt(simulations)) if simulations > 1 else float("nan")
        found.append(Forecast(more, float(sure.mean()), error))
        if found[-1].chance >= target:
            break
    return found


class World(NamedTuple):
    """One MDP that can make data: rows, mean rewards of outcomes, and the standard deviation of single rewards."""

    rows: Float[np.ndarray, "S A O"]
    reward: Float[np.ndarray, "S A O"]
    noise: Float[np.ndarray, "S A"]


def draw_worlds(problem: Problem, seed: int, count: int) -> list[World]:
    """So many MDPs from the posterior, as tables."""
    states, actions, outcomes = problem.log.states, problem.log.actions, problem.outcomes
    worlds = []
    for draws, drawn in SampledMDPs(problem, seed, count).batches(np.ones(states * actions, bool)):
        part, mass = drawn.part, drawn.drawn
        index = np.arange(draws.start, draws.stop)
        cell, atom, variance = rewards.by_outcome(part.rewards, part.held, mass, seed, index)
        place = part.held.row_of_cell() * outcomes + part.held.outcome
        for number in range(len(index)):
            mine = np.flatnonzero(mass.atom_draw == number)
            there = mass.atom_row[mine] * outcomes + mass.atom_outcome[mine]
            rows, reward = np.zeros((2, states * actions * outcomes))
            rows[place], reward[place] = mass.cell_share[number], cell[number]
            rows[there], reward[there] = mass.atom_share[mine], atom[mine]
            shape = (states, actions, outcomes)
            rows = rows.reshape(shape)
            rows /= rows.sum(-1, keepdims=True)
            worlds.append(World(rows, reward.reshape(shape), np.sqrt(variance[number]).reshape(shape[:2])))
    return worlds


def further_data(generator, world: World, more: int, problem: Problem, collector) -> Tally:
    """Counts of `more` transitions from a world.

    Visits of a pair are their expected number under the collecting policy, rounded at random; outcomes and rewards
    are drawn. The log's own rate of breaking off episodes is kept.
    """
    wanted = more * average_time(world.rows, collector, problem, more)[:, None] * collector
    visits = np.floor(wanted + generator.random(wanted.shape)).astype(np.int64)
    counts = generator.multinomial(visits, world.rows)
    state, action, outcome = np.nonzero(counts)
    times, centre = counts[state, action, outcome], world.reward[state, action, outcome]
    noise = world.noise[state, action]
    mean = centre + noise * generator.normal(size=times.shape) / np.sqrt(times)
    squares = noise**2 * np.where(times > 1, generator.chisquare(np.maximum(times - 1, 1)), 0)
    ended = outcome >= problem.log.states
    following = outcome.copy()
    following[ended] = problem.end_states[outcome[ended] - problem.log.states]
    return problem.log.with_cells(state, action, following, ended, (times, mean, squares, mean, mean))


def combine(first: Tally, second: Tally) -> Tally:
    """Counts of two sets of data with the same states, actions and starts."""
    parts = []
    for log in (first, second):
        pair = log.cell_state * log.actions + log.cell_action
        key = (pair * 2 + log.cell_terminated) * (log.states + 1) + log.cell_next + 1
        parts.append((key, log.cell_count, log.cell_mean, log.cell_squares, log.cell_low, log.cell_high))
    cells = reward_moments.merge(
        reward_moments.Moments(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
    )
    pair, following = np.divmod(cells.key, first.states + 1)
    pair, ended = np.divmod(pair, 2)
    return first.with_cells(*np.divmod(pair, first.actions), following - 1, ended.astype(bool), cells[1:])


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
