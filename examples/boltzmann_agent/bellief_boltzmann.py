"""Boltzmann exploration: solve the mean of the belief about the MDP, then prefer better actions, but not always."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from bellief import UserError
from bellief.beliefs import tabular
from bellief.mdp import bellman


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; a temperature of zero would be greedy."""

    temperature: float = 0.1
    horizon: int = 100
    discount: float = 0.99
    prior: tabular.Prior = tabular.PAPER_PRIOR

    def __post_init__(self):
        if not self.temperature > 0:
            raise UserError(f"temperature must be positive, not {self.temperature}.")


class State(NamedTuple):
    """What has been learned, and the value of every action when it was last planned."""

    belief: tabular.TabularBelief
    q_values: jax.Array


class Info(NamedTuple):
    """Value of the best action in each state."""

    value_mean: jax.Array


def init(key, config, spaces):
    belief = tabular.init(spaces.states, spaces.actions, spaces.terminates)
    return State(belief, jnp.zeros((spaces.states, spaces.actions), jnp.float32))


def plan(key, config, spaces, state):
    mean = tabular.mean(config.prior, state.belief, config.discount)

    def step_back(_, q_values):
        return bellman.action_values(mean, jnp.max(q_values, axis=-1))

    q_values = jax.lax.fori_loop(0, config.horizon, step_back, jnp.zeros_like(state.q_values))
    return State(state.belief, q_values), Info(jnp.max(q_values, axis=-1))


def act(key, config, state, observation):
    return jax.random.categorical(key, _preferences(config, state)[observation])


def update(config, state, transition):
    return State(tabular.update(state.belief, transition), state.q_values)


def policy(config, state):
    return jax.nn.softmax(_preferences(config, state), axis=-1)


def _preferences(config, state):
    return state.q_values / config.temperature
