"""Preposterior simulation: how much surer would more data of the same kind make us?

Draw a world from the posterior, let it produce further data, update the belief, and see how sure that belief would be
of the better policy. Averaged over worlds and data, this is the probability of choosing the right policy after so many
more transitions, as the present posterior sees it; more data can only raise it.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bellief.beliefs import normal_gamma, tabular
from bellief.mdp import bellman
from bellief.offline.problem import Problem

# Sizes that are tried, as multiples of the log so far.
FACTORS = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256)
SMALLEST_STEP = 20

# Beyond so many states simulations are left out unless asked for: each of them draws and solves hundreds of MDPs.
MOST_STATES = 150
STREAM = 2**31 - 3


class Forecast(NamedTuple):
    """Chance of choosing the best policy after more transitions, with the standard error over simulated worlds."""

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
    found = []
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        key = jax.random.fold_in(jax.random.key(seed), STREAM)
        belief = problem.log.belief(problem.terminates)
        worlds = [_world(jax.random.fold_in(key, number), problem, belief) for number in range(simulations)]
        for more in _sizes(len(problem.log)):
            sure = np.array(
                [
                    _chance(np.random.default_rng([seed, number, more]), world, more, problem, belief, policies,
                            collector, draws)
                    for number, world in enumerate(worlds)
                ]
            )  # fmt: skip
            error = float(sure.std(ddof=1) / np.sqrt(len(sure))) if len(sure) > 1 else float("nan")
            found.append(Forecast(more, float(sure.mean()), error))
            if found[-1].chance >= target:
                break
    return found


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


def _world(key, problem: Problem, belief):
    """Rows (with the end last, if any), mean rewards and their spreads of one MDP from the posterior."""
    mdp = tabular.sample(key, problem.prior, belief, problem.discount)
    rows = np.asarray(mdp.transition)
    if problem.terminates:
        rows = np.concatenate([rows, np.asarray(mdp.termination)[..., None]], axis=-1)
    return rows / rows.sum(-1, keepdims=True), np.asarray(mdp.reward), np.asarray(mdp.reward_sd)


def _chance(generator, world, more, problem, belief, policies, collector, draws) -> float:
    """Highest posterior probability to be the best, after so many more transitions from one world."""
    further = further_data(generator, world, more, problem, collector)
    counts, rewards = further
    updated = tabular.TabularBelief(
        belief.counts + jnp.asarray(counts, jnp.int32),
        normal_gamma.combine(belief.rewards, normal_gamma.Statistics(*(jnp.asarray(part) for part in rewards))),
    )
    key = jax.random.key(int(generator.integers(2**32)))
    values = _start_values(
        key, updated, problem.discount, jnp.asarray(policies), jnp.asarray(problem.start),
        draws=draws, prior=problem.prior, horizon=problem.horizon,
    )  # fmt: skip
    best = np.bincount(np.asarray(values).argmax(-1), minlength=len(policies)) / draws
    return float(best.max())


def further_data(generator, world, more: int, problem: Problem, collector):
    """Sufficient statistics of `more` transitions from a world.

    Visits of a pair are their expected number under the collecting policy, rounded at random; outcomes and rewards
    are drawn. The log's own rate of breaking off episodes is kept.
    """
    rows, reward, reward_sd = world
    expected = more * average_time(rows, collector, problem, more)[:, None] * collector
    visits = np.floor(expected + generator.random(expected.shape)).astype(np.int64)
    counts = generator.multinomial(visits, rows)
    some, several = visits > 0, visits > 1
    mean = np.where(some, reward + reward_sd * generator.normal(size=reward.shape) / np.sqrt(np.maximum(visits, 1)), 0)
    squares = reward_sd**2 * np.where(several, generator.chisquare(np.maximum(visits - 1, 1)), 0)
    return counts, (visits.astype(np.int32), mean, squares)


def average_time(rows, collector, problem: Problem, steps: int) -> Float[np.ndarray, "S"]:
    """Average share of the first `steps` steps that are spent in each state, by doubling the number of steps."""
    log, states = problem.log, problem.log.states
    going_on = log.transitions - log.ends
    broken_off = min(max((log.episodes - 1 - log.ends) / going_on, 0.0), 1.0) if going_on else 0.0
    chain = np.einsum("sa,sat->st", collector, rows[..., :states]) * (1 - broken_off)
    chain = chain + (1 - chain.sum(-1, keepdims=True)) * problem.start
    mass, average = problem.start, problem.start
    power = chain
    for _ in range(max(steps, 1).bit_length() - 1):
        average = (average + average @ power) / 2
        power = power @ power
        power /= power.sum(-1, keepdims=True)
    return average / average.sum() if mass.sum() else mass


@functools.partial(jax.jit, static_argnames=("draws", "prior", "horizon"))
def _start_values(key, belief, discount, policies, start, *, draws, prior, horizon):
    def one_mdp(one_key):
        mdp = tabular.sample(one_key, prior, belief, discount)
        solve = (
            bellman.evaluate_exact if horizon is None else functools.partial(bellman.evaluate_finite, horizon=horizon)
        )
        return jax.vmap(lambda policy: solve(mdp, policy) @ start)(policies)

    return jax.lax.map(one_mdp, jax.random.split(key, draws), batch_size=min(draws, 100))
