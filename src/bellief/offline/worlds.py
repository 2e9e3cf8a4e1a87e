"""Draws of whole MDPs from the dense belief in NumPy.

The same conjugate posteriors as `beliefs.tabular`. Decisions ask small questions in many shapes (this policy against
that one, a few more observations), for which compiling takes longer than computing.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.beliefs.tabular import Prior
from bellief.offline.problem import Problem


class Counts(NamedTuple):
    """The dense belief's sufficient statistics."""

    outcomes: Int[np.ndarray, "S A O"]
    visits: Int[np.ndarray, "S A"]
    mean: Float[np.ndarray, "S A"]
    squares: Float[np.ndarray, "S A"]


class World(NamedTuple):
    """An MDP, or a batch of them: rows (the end last, where episodes end), mean rewards, and spreads of rewards."""

    rows: Float[np.ndarray, "*batch S A O"]
    reward: Float[np.ndarray, "*batch S A"]
    reward_sd: Float[np.ndarray, "*batch S A"]


def counts_of(problem: Problem) -> Counts:
    """The statistics of the log."""
    log = problem.log
    outcomes = np.zeros((log.states, log.actions, log.states + problem.terminates), dtype=np.int64)
    outcomes[log.cell_state, log.cell_action, log.cell_outcome] = log.cell_count
    moments = np.zeros((2, log.states, log.actions))
    moments[:, log.pair_state, log.pair_action] = log.pair_mean, log.pair_squares
    return Counts(outcomes, log.visits(), *moments)


def draw(generator: np.random.Generator, prior: Prior, counts: Counts, number: int) -> World:
    """So many MDPs from the posterior: Dirichlet rows and NormalGamma rewards."""
    weights = generator.standard_gamma(
        prior.concentration(counts.outcomes.shape[-1]) + counts.outcomes, size=(number, *counts.outcomes.shape)
    )
    total = weights.sum(-1, keepdims=True)
    rows = np.where(total > 0, weights, 1.0) / np.where(total > 0, total, counts.outcomes.shape[-1])
    strength = prior.reward_strength + counts.visits
    gap = counts.mean - prior.reward_mean
    shape = prior.reward_shape + counts.visits / 2
    rate = prior.reward_rate + counts.squares / 2 + prior.reward_strength * counts.visits * gap**2 / (2 * strength)
    precision = generator.standard_gamma(shape, size=(number, *shape.shape)) / rate
    centre = prior.reward_mean + gap * counts.visits / strength
    reward = centre + generator.standard_normal(precision.shape) / np.sqrt(strength * precision)
    return World(rows, reward, 1 / np.sqrt(precision))


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
    """Statistics of two sets of data together (Chan's formula)."""
    visits = first.visits + second.visits
    share = second.visits / np.maximum(visits, 1)
    gap = second.mean - first.mean
    squares = first.squares + second.squares + gap**2 * first.visits * share
    return Counts(first.outcomes + second.outcomes, visits, first.mean + gap * share, squares)
