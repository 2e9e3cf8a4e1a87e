"""Multi-MDP backwards induction (Dimitrakakis 2011): one policy for several sampled MDPs at once.

Every step back chooses the action that is best on average over the MDPs, and backs each MDP's own values up under it.

>>> import jax
>>> from bellief.agents import mmbi
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = mmbi.Config(horizon=5, mdps=3)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = mmbi.init(key, config, spaces)
>>> state = mmbi.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = mmbi.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
>>> mmbi.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> mmbi.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import agenda, rules
from bellief.agents.tabular_agent import State, act, init, policy, sample_mdps, update, zeros
from bellief.beliefs import tabular
from bellief.errors import UserError, require
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.replaceable import replaceable
from bellief.types import Spaces

__all__ = ["Config", "Info", "State", "act", "induce", "init", "plan", "policy", "update"]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings: as many MDPs and steps ahead as BBI has, since the paper does not say; `schedule` says when to plan
    (see `bellief.agents.agenda`).
    """

    horizon: int = 100
    discount: float = 0.99
    mdps: int = 10
    prior: tabular.Prior = tabular.PAPER_PRIOR
    schedule: str = agenda.triangular_by_default()

    def __post_init__(self):
        require(0 < self.discount <= 1, f"discount must lie in (0, 1], not {self.discount}.")
        if self.horizon < 1 or self.mdps < 1:
            raise UserError(f"horizon and mdps must be at least 1, not {self.horizon} and {self.mdps}.")
        agenda.check_schedule(self.schedule)


class Info(NamedTuple):
    """Mean and spread over the MDPs of the values that the policy has in them."""

    value_mean: Float[Array, "S"]
    value_sd: Float[Array, "S"]


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Sample MDPs, run the induction over all of them, keep the first step's actions."""
    mdp_key, tie_key = jax.random.split(key)
    mdps = sample_mdps(jax.random.split(mdp_key, config.mdps), config.prior, state.belief, spaces, config.discount)
    keys = jax.random.split(tie_key, config.horizon)
    ties = rules.tie_breakers(keys, mdps.reward.shape[1:], mdps.reward.dtype)
    actions, values = induce(mdps, config.discount, ties)
    return state._replace(actions=actions), Info(jnp.mean(values, axis=0), jnp.std(values, axis=0))


@replaceable
def induce(
    mdps: TabularMDP, discount: float, tie_breakers: Float[Array, "H S*A"]
) -> tuple[Int[Array, "S"], Float[Array, "J S"]]:
    """H times, from zero: Q_j = R_j + discount P_j V_j; a(s) maximises the mean over j; V_j(s) = Q_j(s, a(s))."""
    states = jnp.arange(mdps.reward.shape[1])

    def step(carry, ties):
        values, _ = carry
        q_values = mdps.reward + discount * jnp.einsum("jsat,jt->jsa", mdps.transition, values)
        actions = rules.argmax_with(ties, jnp.sum(q_values, axis=0) / len(q_values))
        return (q_values[:, states, actions], actions), None

    first = (zeros(mdps), jnp.zeros(len(states), jnp.int32))
    (values, actions), _ = jax.lax.scan(step, first, tie_breakers)
    return actions, values
