"""Optimism by the exact uncertainty Bellman equation (Luis et al. 2023, "Model-based uncertainty in value functions").

The variance of a policy's value over the posterior of MDPs solves a Bellman equation whose local terms are

    u(s, a) = Var[r(s, a)] + discount^2 (Var[sum_t p(t | s, a) V(t)] - E[Var_{t ~ p}(V_p(t) - V(t))]),

where V is the value in the mean MDP and V_p that in a drawn one. Both expectations are taken over an ensemble of drawn
MDPs, negative u are set to zero, and policy iteration maximises Q + `gain` sqrt(U). The recursion is exact for MDPs
without cycles whose rows are independent.

The prior is theirs: rows are Dirichlet(1 / sqrt(S)), mean rewards N(0, 1), all but known after one visit (precision
`reward_precision`). `repeat` counts every transition so many times; they repeat it L times on DeepSea of size L, once
elsewhere. They plan before each episode.

>>> import jax
>>> from bellief.agents import ube
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = ube.Config(discount=0.9)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = ube.init(key, config, spaces)
>>> state = ube.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = ube.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
>>> ube.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> ube.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import agenda, rules
from bellief.agents.tabular_agent import State, act, init, policy, update
from bellief.beliefs import dirichlet, tabular
from bellief.errors import UserError, require
from bellief.types import Spaces

__all__ = [
    "Config",
    "Ensemble",
    "Info",
    "State",
    "act",
    "draw",
    "evaluate",
    "init",
    "plan",
    "policy",
    "uncertainty",
    "update",
]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the defaults are those of the paper's public experiments.

    Args:
        gain: standard deviations of optimism.
        mdps: MDPs in the ensemble.
        repeat: how often a transition is counted.
        reward_precision: known precision of a single reward; the mean reward of a pair is N(0, 1) before.
        iterations: the most steps of policy iteration.
        schedule: when to plan, see `bellief.agents.agenda`.
    """

    discount: float = 0.99
    gain: float = 1.0
    mdps: int = 5
    repeat: int = 1
    reward_precision: float = 1e6
    iterations: int = 40
    schedule: str = agenda.EPISODE

    def __post_init__(self):
        require(0 < self.discount < 1, f"discount must lie between 0 and 1, not {self.discount}.")
        if not (0 <= self.gain < math.inf and self.reward_precision > 0):
            raise UserError(
                f"gain must be a finite number from 0 and reward_precision positive, not {self.gain} and "
                f"{self.reward_precision}."
            )
        if min(self.mdps, self.repeat, self.iterations) < 1:
            raise UserError(
                f"mdps, repeat and iterations must be at least 1, not {self.mdps}, {self.repeat}, {self.iterations}."
            )
        agenda.check_schedule(self.schedule)


class Info(NamedTuple):
    """Steps of policy iteration, and mean and spread of the value of the policy found."""

    iterations: Int[Array, ""]
    value_mean: Float[Array, "S"]
    value_sd: Float[Array, "S"]


class Ensemble(NamedTuple):
    """Mean rows and rewards, and drawn ones."""

    mean_rows: Float[Array, "S A S"]
    mean_reward: Float[Array, "S A"]
    rows: Float[Array, "J S A S"]
    reward: Float[Array, "J S A"]


def draw(key: Key[Array, ""], config: Config, belief: tabular.TabularBelief, support: int | None = None) -> Ensemble:
    """The mean MDP and an ensemble of drawn ones under the prior of the module's description."""
    states = belief.counts.shape[0]
    concentration = 1 / math.sqrt(states)
    counts = belief.counts * config.repeat
    dtype = belief.rewards.mean.dtype
    precision = 1 + config.repeat * config.reward_precision * belief.rewards.count.astype(dtype)
    reward = (precision - 1) * belief.rewards.mean / precision
    row_key, reward_key = jax.random.split(key)

    def rows(one):
        return dirichlet.sample(one, concentration, counts, dtype, support)[..., :states]

    drawn = jax.vmap(rows)(jax.random.split(row_key, config.mdps))
    noise = jax.random.normal(reward_key, (config.mdps, *reward.shape), dtype)
    centre = dirichlet.mean(concentration, counts, dtype)[..., :states]
    return Ensemble(centre, reward, drawn, reward + noise / jnp.sqrt(precision))


def evaluate(rows: Float[Array, "S A S"], reward: Float[Array, "S A"], actions: Int[Array, "S"], discount: float):
    """Values of the states and the pairs under a policy, by a linear solve."""
    states = jnp.arange(actions.shape[0])
    chain = jnp.eye(actions.shape[0], dtype=reward.dtype) - discount * rows[states, actions]
    values = jnp.linalg.solve(chain, reward[states, actions])
    return values, reward + discount * rows @ values


def uncertainty(ensemble: Ensemble, actions: Int[Array, "S"], discount: float):
    """Mean value of the pairs under a policy and its variance by the uncertainty Bellman equation."""
    values, q_values = evaluate(ensemble.mean_rows, ensemble.mean_reward, actions, discount)
    drawn = jax.vmap(lambda rows, reward: evaluate(rows, reward, actions, discount)[0])(ensemble.rows, ensemble.reward)
    following = jnp.einsum("jsat,t->jsa", ensemble.rows, values)
    deviation = drawn - values
    first = jnp.einsum("jsat,jt->jsa", ensemble.rows, deviation)
    second = jnp.einsum("jsat,jt->jsa", ensemble.rows, deviation**2)
    gap = jnp.mean(second - first**2, axis=0)
    local = jnp.var(ensemble.reward, axis=0) + discount**2 * (jnp.var(following, axis=0) - gap)
    variances, pair_variances = evaluate(ensemble.mean_rows, jnp.maximum(local, 0), actions, discount**2)
    return values, q_values, variances, pair_variances


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Policy iteration on Q + gain sqrt(U), from random actions, until the policy stays the same."""
    draw_key, first_key, tie_key = jax.random.split(key, 3)
    ensemble = draw(draw_key, config, state.belief, spaces.support)

    def unfinished(carry):
        _, changed, number, _, _ = carry
        return changed & (number < config.iterations)

    def improve(carry):
        actions, _, number, _, _ = carry
        values, q_values, variances, pair_variances = uncertainty(ensemble, actions, config.discount)
        scores = q_values + config.gain * jnp.sqrt(jnp.maximum(pair_variances, 0))
        better = rules.argmax(tie_key, scores)
        return better, jnp.any(better != actions), number + 1, values, variances

    actions = jax.random.randint(first_key, (spaces.states,), 0, spaces.actions, jnp.int32)
    nothing = jnp.zeros(spaces.states, ensemble.mean_reward.dtype)
    first = (actions, jnp.array(True), jnp.array(0, jnp.int32), nothing, nothing)
    actions, _, number, values, variances = jax.lax.while_loop(unfinished, improve, first)
    return State(state.belief, actions), Info(number, values, jnp.sqrt(jnp.maximum(variances, 0)))
