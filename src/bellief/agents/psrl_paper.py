"""Posterior sampling (Strens 2000) under the paper's prior and schedule: solve one MDP drawn from the posterior, follow
its policy until the next update.

>>> import jax
>>> from bellief.agents import psrl_paper
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = psrl_paper.Config(discount=0.9)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = psrl_paper.init(key, config, spaces)
>>> state = psrl_paper.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = psrl_paper.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_mean.shape
('State', 'Info', (5,))
>>> psrl_paper.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> psrl_paper.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import agenda, rules, tabular_agent
from bellief.agents.tabular_agent import act, policy, update
from bellief.beliefs import tabular
from bellief.errors import require
from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.types import Spaces

__all__ = ["Config", "Info", "State", "act", "follow_optimum", "init", "plan", "policy", "update"]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the defaults are the paper's.

    Args:
        tolerance: how exactly the sampled MDP is solved, as a fraction of the span of possible values.
        schedule: when to plan, see `bellief.agents.agenda`.
    """

    discount: float = 0.99
    tolerance: float = 1e-4
    prior: tabular.Prior = tabular.PAPER_PRIOR
    schedule: str = agenda.triangular_by_default()

    def __post_init__(self):
        require(0 < self.discount < 1, f"discount must lie between 0 and 1, not {self.discount}.")
        require(self.tolerance > 0, f"tolerance must be positive, not {self.tolerance}.")
        agenda.check_schedule(self.schedule)


class State(NamedTuple):
    """The belief, the chosen actions, and the last solution, from which the next one starts."""

    belief: tabular.TabularBelief
    actions: Int[Array, "S"]
    values: Float[Array, "S"]


class Info(NamedTuple):
    """Greedy steps that the solver took, and optimal values of the MDP that it solved."""

    iterations: Int[Array, ""]
    value_mean: Float[Array, "S"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """No data; actions at random until the first plan."""
    belief, actions = tabular_agent.init(key, config, spaces)
    return State(belief, actions, jnp.zeros(spaces.states, belief.rewards.mean.dtype))


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Draw an MDP, solve it, keep its greedy actions."""
    mdp_key, tie_key = jax.random.split(key)
    mdp = tabular.sample(mdp_key, config.prior, state.belief, config.discount, support=spaces.support)
    return follow_optimum(tie_key, config, spaces, state, mdp)


def follow_optimum(
    key: Key[Array, ""], config: Any, spaces: Spaces, state: State, mdp: TabularMDP
) -> tuple[State, Info]:
    """Solve an MDP from the last solution on, and keep its greedy actions."""
    span = tabular.reward_span(config.prior, state.belief, spaces) / (1 - config.discount)
    solution = bellman.modified_policy_iteration(mdp, state.values, config.tolerance * span)
    actions = rules.argmax(key, bellman.action_values(mdp, solution.values))
    return State(state.belief, actions, solution.values), Info(solution.iterations, solution.values)
