"""The bootstrap, without a prior: episodes are resampled with replacement, a model is fitted to them, and the policy is
evaluated in it.

What was never seen does not exist in these models: a pair that a resampled log lacks gives its share to the policy's
other actions in the state, and a state without any of them has value zero. The intervals are therefore no guide for
policies that leave the log. If a log has a single episode, steps are resampled instead.

>>> import bellief
>>> data = bellief.Transitions.from_arrays(
...     [0, 0, 0, 0], [0] * 4, [0.0, 1.0, 0.0, 1.0], [0, 0, 0, 0], terminated=[False, True, False, True]
... )
>>> value = bellief.evaluate(data, discount=0.5, method="bootstrap", draws=50)
>>> value.method, bool(0 < value.start_summary()["mean"] < 1)
('bootstrap', True)
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.errors import UserError
from bellief.evaluation import chains
from bellief.evaluation.problem import Problem
from bellief.logs.transitions import Transitions

MOST_STATES = 3_000


class Resampled(NamedTuple):
    """Values of each state in each refitted model, and of the start."""

    values: Float[np.ndarray, "N S"]
    start: Float[np.ndarray, "N"]


def evaluate(
    problem: Problem, rows: Transitions, policy: Float[np.ndarray, "S A"], draws: int, seed: int, own_start: bool
) -> Resampled:
    """`draws` refitted models; with `own_start` first states are those of the episodes drawn."""
    states, actions = policy.shape
    if states > MOST_STATES:
        raise UserError(f"The bootstrap is for up to {MOST_STATES:,} states, and the log has {states:,}: use joint.")
    rng = np.random.default_rng([seed, 7])
    # A single episode cannot be drawn again; its steps can.
    begins = rows.first if rows.first.sum() > 1 else np.ones(len(rows), bool)
    episode = np.cumsum(begins) - 1
    episodes, own_start = int(episode[-1]) + 1, own_start and begins is rows.first
    pair, first = rows.state * actions + rows.action, rows.state[np.flatnonzero(begins)]
    going_on = np.flatnonzero(~rows.terminated)
    link = rows.state[going_on] * states + rows.next_state[going_on]
    found = Resampled(np.empty((draws, states)), np.empty(draws))
    mean, discount = float(rows.reward.mean()), min(problem.discount, 1 - chains.BARELY)
    length = 1 / (1 - discount) if problem.horizon is None else float((discount ** np.arange(problem.horizon)).sum())
    for draw in range(draws):
        times = np.bincount(rng.integers(episodes, size=episodes), minlength=episodes)
        weight = times[episode].astype(np.float64)
        visits = np.bincount(pair, weight, states * actions).reshape(states, actions)
        taken = np.where(visits > 0, policy, 0.0)
        total = taken.sum(-1, keepdims=True)
        taken = np.divide(taken, total, out=np.zeros_like(taken), where=total > 0)
        weight *= np.divide(taken, visits, out=np.zeros_like(taken), where=visits > 0).ravel()[pair]
        chain = np.bincount(link, weight[going_on], states * states).reshape(states, states)
        reward = np.bincount(rows.state, weight * rows.reward, states)
        # Where every state pays and no episode ends, what all rewards share need not be solved for.
        shared = mean if not rows.terminated.any() and (total > 0).all() else 0.0
        found.values[draw] = _values(chain, reward - shared, problem) + shared * length
        start = np.bincount(first, times, states) / episodes if own_start else problem.start
        found.start[draw] = start @ found.values[draw]
    return found


def _values(chain: Float[np.ndarray, "S S"], reward: Float[np.ndarray, "S"], problem: Problem):
    if problem.horizon is None:
        return np.linalg.solve(np.eye(len(reward)) - min(problem.discount, 1 - chains.BARELY) * chain, reward)
    values = np.zeros(len(reward))
    for _ in range(problem.horizon):
        values = reward + problem.discount * (chain @ values)
    return values
