"""Q-learning with epsilon-greedy exploration (Watkins 1989): no beliefs at all, the floor of every comparison.

>>> import jax
>>> from bellief.agents import q_learning
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = q_learning.Config(epsilon=0.2)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = q_learning.init(key, config, spaces)
>>> state = q_learning.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = q_learning.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_mean.shape
('State', 'Info', (5,))
>>> q_learning.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> q_learning.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import rules
from bellief.errors import UserError, require
from bellief.types import Spaces, Transition

# There is nothing to plan, with however many states.
LIGHT_PLANS = 2**31


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings. The n-th update of a pair has step size max(n^-decay, smallest_step)."""

    discount: float = 0.99
    epsilon: float = 0.1
    decay: float = 0.6
    smallest_step: float = 0.01

    def __post_init__(self):
        require(0 < self.discount <= 1, f"discount must lie in (0, 1], not {self.discount}.")
        require(0 <= self.epsilon <= 1, f"epsilon must lie between 0 and 1, not {self.epsilon}.")
        if not (0 <= self.decay <= 1 and 0 < self.smallest_step <= 1):
            raise UserError(f"decay and smallest_step must lie in [0, 1], not {self.decay} and {self.smallest_step}.")


class State(NamedTuple):
    """Q values and the number of updates of each pair."""

    q_values: Float[Array, "S A"]
    visits: Int[Array, "S A"]


class Info(NamedTuple):
    """Value of the greedy action in each state."""

    value_mean: Float[Array, "S"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """All zero."""
    del key, config
    shape = (spaces.states, spaces.actions)
    return State(jnp.zeros(shape, float), jnp.zeros(shape, jnp.int32))


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Nothing to plan: learning happens at every step."""
    del key, config, spaces
    return state, Info(jnp.max(state.q_values, axis=-1))


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """A random action with probability epsilon, else a greedy one."""
    explore_key, random_key, tie_key = jax.random.split(key, 3)
    actions = state.q_values.shape[1]
    greedy = rules.argmax(tie_key, state.q_values[observation][None])[0]
    explores = jax.random.uniform(explore_key) < config.epsilon
    return jnp.where(explores, jax.random.randint(random_key, (), 0, actions), greedy)


def update(config: Config, state: State, transition: Transition) -> State:
    """Q(s, a) moves towards r + discount * max Q(s', .), which is r alone at an end."""
    row = (transition.state, transition.action)
    count = state.visits[row] + 1
    size = jnp.maximum(count.astype(state.q_values.dtype) ** -config.decay, config.smallest_step)
    best = jnp.max(state.q_values[transition.next_state])
    target = transition.reward + config.discount * jnp.where(transition.terminated, 0, best)
    return State(state.q_values.at[row].add(size * (target - state.q_values[row])), state.visits.at[row].add(1))


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """Greedy, equally often among the best, except for the share of random actions."""
    return (1 - config.epsilon) * rules.greedy(state.q_values) + config.epsilon / state.q_values.shape[1]
