"""Variational deep Q-network on continuous states: the network of `vdqn`, fed with the state itself.

As in the paper it sees the raw state, neither features nor bounds.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.agents import rules, vdqn
from bellief.agents.vdqn import Config, State, act, update
from bellief.types import BoxSpaces

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update"]


class Info(NamedTuple):
    """Loss of the last batch."""

    loss: Float[Array, ""]


def init(key: Key[Array, ""], config: Config, spaces: BoxSpaces) -> State:
    """An untrained network and an empty buffer."""
    empty = jnp.zeros((config.buffer, spaces.dimension), float)
    return vdqn.begin(key, config, spaces.dimension, spaces.actions, empty)


def plan(key: Key[Array, ""], config: Config, spaces: BoxSpaces, state: State) -> tuple[State, Info]:
    """Nothing to plan; what `pace` puts off is done, and the loss is reported."""
    del spaces
    state = vdqn.catch_up(key, config, state)
    return state, Info(state.loss)


def policy(config: Config, state: State, observation: Float[Array, "D"]) -> Float[Array, "A"]:
    """Greedy under the mean weights; tied actions share the probability."""
    del config
    signal = observation
    for number, layer in enumerate(vdqn.in_force(state).mean):
        signal = (jax.nn.relu(signal) if number else signal) @ layer.weight + layer.bias
    return rules.greedy(signal)
