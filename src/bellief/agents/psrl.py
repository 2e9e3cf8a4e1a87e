"""Posterior sampling with a learned prior: one MDP drawn from `beliefs.learned`, solved, followed until the next plan.

A drawn row is the outcomes that were seen, a few atoms for the rest, and something even, so that large tables are
solved by what is known of them.

>>> import jax
>>> from bellief.agents import psrl
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = psrl.Config(discount=0.9)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = psrl.init(key, config, spaces)
>>> state = psrl.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = psrl.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_mean.shape
('State', 'Info', (5,))
>>> psrl.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> psrl.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import agenda
from bellief.agents.tabular_agent import act
from bellief.beliefs import learned
from bellief.errors import UserError, require
from bellief.induction import moments, value_iteration
from bellief.types import Spaces, Transition

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update"]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings.

    Args:
        tolerance: the drawn MDP is solved until no value moves by more than this times the largest reward.
        most_sweeps: the most steps of value iteration of one plan, which begins at the last plan's values.
        schedule: when to plan, see `bellief.agents.agenda`.
    """

    discount: float = 0.99
    tolerance: float = 1e-3
    most_sweeps: int = 500
    schedule: str = agenda.EAGER

    def __post_init__(self):
        require(0 < self.discount < 1, f"discount must lie between 0 and 1, not {self.discount}.")
        if not self.tolerance > 0 or self.most_sweeps < 1:
            raise UserError(
                f"tolerance must be positive and most_sweeps at least 1, not {self.tolerance} and {self.most_sweeps}."
            )
        agenda.check_schedule(self.schedule)


class State(NamedTuple):
    """What has been learned, the chosen actions, and the last solution, from which the next one starts."""

    belief: learned.Belief
    actions: Int[Array, "S"]
    values: Float[Array, "S"]


class Info(NamedTuple):
    """Steps of value iteration, and the drawn MDP's optimal values."""

    sweeps: Int[Array, ""]
    value_mean: Float[Array, "S"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """Nothing learned; actions at random until the first plan."""
    del config
    actions = jax.random.randint(key, (spaces.states,), 0, spaces.actions)
    return State(learned.init(spaces), actions, jnp.zeros(spaces.states, float))


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Draw an MDP, solve it, keep its greedy actions."""
    draw_key, tie_key = jax.random.split(key)
    belief = state.belief
    ties = jax.random.uniform(tie_key, (spaces.states, spaces.actions), state.values.dtype)
    tolerance = config.tolerance * belief.rewards.largest

    def with_slots(slots: int) -> value_iteration.Solution:
        drawn = learned.sample(draw_key, belief, slots)
        return value_iteration.solve(
            ties, drawn, belief.ends, state.values, config.discount, tolerance, config.most_sweeps
        )

    solution = moments.by_size(belief, with_slots)
    return State(belief, solution.actions, solution.values), Info(solution.sweeps, solution.values)


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition; the plan stays as it is until the next one."""
    del config
    return state._replace(belief=learned.update(state.belief, transition))


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """The stationary policy that the agent follows now."""
    del config
    actions = state.belief.rows.visits.shape[1]
    return jax.nn.one_hot(state.actions, actions, dtype=state.values.dtype)
