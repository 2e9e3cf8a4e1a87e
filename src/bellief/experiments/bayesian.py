"""Bayesian returns: what an agent earns on average over MDPs drawn from the prior, beside the exact optimum.

>>> import numpy as np
>>> from bellief.experiments.bayesian import bayesian_returns
>>> from bellief.induction import bayes_optimal
>>> problem = bayes_optimal.from_rewards([[0.0, 0.2], [1.0, 0.5]], concentration=0.5, discount=0.95)
>>> found = bayesian_returns(problem, "psrl", horizon=4, runs=200)
>>> found.shape  # runs, and the return of the first 1, 2, 3 and 4 steps
(200, 4)
>>> error = found.std(0) / np.sqrt(200)
>>> bool((found.mean(0) <= bayes_optimal.values_by_horizon(problem, 4) + 4 * error).all())
True
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bellief.beliefs import normal_gamma
from bellief.errors import UserError
from bellief.experiments.settings import build_config
from bellief.induction.bayes_optimal import Problem, draw_mdps
from bellief.registry import AGENTS, find
from bellief.types import Spaces, Transition

# A known reward has been seen so often.
KNOWN = 1_000_000
# Runs side by side.
WIDTH = 500


def bayesian_returns(
    problem: Problem,
    agent: str,
    horizon: int,
    runs: int,
    settings: dict[str, Any] | None = None,
    seed: int = 0,
    start: int = 0,
) -> Float[np.ndarray, "runs H"]:
    """Discounted returns of the first 1, ..., `horizon` steps, each run in an MDP of its own from the prior.

    The agent has the problem's discount and plans before every step. One with the paper's beliefs has the problem's
    prior about transitions and starts out knowing the rewards, as the Bayes-optimal policy does; others have to find
    out.

    Args:
        problem: one whose outcomes are the next states and whose pseudo-counts are all equal, as `from_rewards` makes.
        agent: the name of an agent for tables.
        horizon: steps of every run.
        runs: MDPs to draw.
        settings: settings of the agent other than discount and prior.
        seed: same seed, same returns, and the same MDPs for every agent.
        start: the first state.
    """
    spaces, concentration = _spaces(problem)
    module = find(AGENTS, "agent", agent).load()
    names = set(module.Config.__dataclass_fields__)
    given: dict[str, Any] = {"discount": problem.discount, **(settings or {})}
    if "prior" in names:
        given = {"prior.dirichlet": concentration, **given}
    config = build_config(module.Config, agent, given)
    reward = jnp.asarray(problem.reward[..., 0], float)

    def run(key, probability):
        first, rest = jax.random.split(key)
        state = _with_rewards(module.init(first, config, spaces), reward)

        def step(carry, key):
            state, place = carry
            plan_key, act_key, world_key = jax.random.split(key, 3)
            state, _ = module.plan(plan_key, config, spaces, state)
            action = module.act(act_key, config, state, place)
            following = jax.random.categorical(world_key, jnp.log(probability[place, action])).astype(jnp.int32)
            earned = reward[place, action]
            seen = Transition(place, action, earned, following, jnp.array(False))
            return (module.update(config, state, seen), following), earned

        carry = (state, jnp.array(start, jnp.int32))
        return jax.lax.scan(step, carry, jax.random.split(rest, horizon))[1]

    together = jax.jit(jax.vmap(run))
    chances = np.asarray(draw_mdps(problem, runs, seed), np.float32)
    keys = jax.random.split(jax.random.key(seed), runs)
    earned = [
        np.asarray(together(keys[first : first + WIDTH], chances[first : first + WIDTH]), np.float64)
        for first in range(0, runs, WIDTH)
    ]
    return np.cumsum(np.concatenate(earned) * problem.discount ** np.arange(horizon), axis=1)


def _spaces(problem: Problem) -> tuple[Spaces, float]:
    states, actions, outcomes = problem.concentration.shape
    plain = outcomes == states and (problem.next_state == np.arange(states)).all()
    if not plain or np.ptp(problem.concentration) > 0 or np.ptp(problem.reward, axis=-1).max() > 0:
        raise UserError(
            "Agents need a problem whose outcomes are the next states, with equal pseudo-counts and rewards by state "
            "and "
            "action: make one with from_rewards."
        )
    low, high = float(problem.reward.min()), float(problem.reward.max())
    return Spaces(states, actions, False, low, high), float(problem.concentration.flat[0])


def _with_rewards(state: Any, reward: jax.Array) -> Any:
    """The state of an agent whose belief about rewards, if it has the paper's, is certain."""
    rewards = getattr(getattr(state, "belief", None), "rewards", None)
    if not isinstance(rewards, normal_gamma.Statistics):
        return state
    known = rewards._replace(
        count=jnp.full_like(rewards.count, KNOWN), mean=reward.astype(rewards.mean.dtype), squares=rewards.squares
    )
    return state._replace(belief=state.belief._replace(rewards=known))
