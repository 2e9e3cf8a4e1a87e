"""A small agent that keeps the contract, and what becomes of it with one part replaced by a broken one."""

import dataclasses
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class Config:
    epsilon: float = 0.5
    step: float = 0.5
    discount: float = 0.9


class State(NamedTuple):
    q_values: jax.Array
    key: jax.Array


class Info(NamedTuple):
    value_mean: jax.Array


def init(key, config, spaces):
    return State(jnp.zeros((spaces.states, spaces.actions), jnp.float32), key)


def plan(key, config, spaces, state):
    return state, Info(jnp.max(state.q_values, axis=-1))


def act(key, config, state, observation):
    explore_key, action_key = jax.random.split(key)
    chosen = jax.random.randint(action_key, (), 0, state.q_values.shape[1])
    explores = jax.random.uniform(explore_key) < config.epsilon
    return jnp.where(explores, chosen, jnp.argmax(state.q_values[observation]))


def update(config, state, transition):
    later = jnp.where(transition.terminated, 0, jnp.max(state.q_values[transition.next_state]))
    place = (transition.state, transition.action)
    # Noise from the state's own key, so that there is one to be saved, split and vmapped.
    key, noise_key = jax.random.split(state.key)
    noise = 1e-3 * transition.reward * jax.random.normal(noise_key)
    error = transition.reward + noise + config.discount * later - state.q_values[place]
    return State(state.q_values.at[place].add(config.step * error), key)


def policy(config, state):
    actions = state.q_values.shape[1]
    greedy = jax.nn.one_hot(jnp.argmax(state.q_values, axis=-1), actions)
    return (1 - config.epsilon) * greedy + config.epsilon / actions


class Agent(SimpleNamespace):
    """An agent made of parts. Hashed by identity, as modules are."""

    __hash__ = object.__hash__
    __name__ = "tried"


def agent(**parts):
    sound = {"Config": Config, "init": init, "plan": plan, "act": act, "update": update, "policy": policy}
    return Agent(**{**sound, **parts})
