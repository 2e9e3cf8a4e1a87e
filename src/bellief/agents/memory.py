"""What continuous agents store of the past: a uniform sample of all states, and the ranges of states and rewards."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

from bellief.agents import stored_key
from bellief.induction.continuous import RewardRange
from bellief.types import BoxSpaces, Transition

# Width of a dimension whose bounds are unknown and whose values never varied.
LEAST_WIDTH = 1e-3


class Memory(NamedTuple):
    """A reservoir in which every state visited so far is equally likely to be, and ranges of states and rewards."""

    states: Float[Array, "M D"]
    count: Int[Array, ""]  # type: ignore[assignment]  # a tuple has a method of that name
    key_data: UInt32[Array, "2"]
    seen: Float[Array, "2 D"]
    step_rewards: Float[Array, "2"]
    end_rewards: Float[Array, "2"]


def init(key: Key[Array, ""], size: int, dimension: int) -> Memory:
    """Nothing seen: ranges are empty, from plus to minus infinity."""
    nothing = jnp.array([jnp.inf, -jnp.inf], float)
    return Memory(
        jnp.zeros((size, dimension), float),
        jnp.array(0, jnp.int32),
        jax.random.key_data(key),
        jnp.tile(nothing[:, None], (1, dimension)),
        nothing,
        jnp.copy(nothing),
    )


def update(memory: Memory, transition: Transition) -> Memory:
    """Account for one transition (reservoir sampling: the n-th state replaces a random one with probability M / n)."""
    size = memory.states.shape[0]
    own_key = jax.random.fold_in(stored_key.restore(memory.key_data), memory.count)
    drawn = jax.random.randint(own_key, (), 0, jnp.maximum(memory.count + 1, 1))
    place = jnp.where(memory.count < size, memory.count, drawn)
    states = memory.states.at[place].set(transition.state, mode="drop")
    ended = transition.terminated
    return Memory(
        states,
        memory.count + 1,
        memory.key_data,
        _widen(memory.seen, transition.state, jnp.array(True)),
        _widen(memory.step_rewards, transition.reward, ~ended),
        _widen(memory.end_rewards, transition.reward, ended),
    )


def _widen(seen, value, condition):
    wider = jnp.stack([jnp.minimum(seen[0], value), jnp.maximum(seen[1], value)])
    return jnp.where(condition, wider, seen)


def known(memory: Memory) -> Int[Array, ""]:
    """How many states the reservoir holds."""
    return jnp.minimum(memory.count, memory.states.shape[0])


def bounds(memory: Memory, spaces: BoxSpaces) -> Float[Array, "2 D"]:
    """The box that values are looked at in: what is known of each dimension, else what was seen and a tenth more."""
    low, high = memory.seen
    some = memory.count > 0
    low, high = jnp.where(some, low, -1.0), jnp.where(some, high, 1.0)
    extra = jnp.maximum(0.1 * (high - low), LEAST_WIDTH)
    given_low = jnp.array([jnp.nan if value is None else value for value in spaces.low], low.dtype)
    given_high = jnp.array([jnp.nan if value is None else value for value in spaces.high], low.dtype)
    return jnp.stack(
        [
            jnp.where(jnp.isnan(given_low), low - extra, given_low),
            jnp.where(jnp.isnan(given_high), high + extra, given_high),
        ]
    )


def reward_range(memory: Memory, spaces: BoxSpaces) -> RewardRange:
    """The rewards seen so far, of steps and of ends; where none were seen, those that the environment allows."""
    allowed = jnp.array(
        [
            -jnp.inf if spaces.reward_low is None else spaces.reward_low,
            jnp.inf if spaces.reward_high is None else spaces.reward_high,
        ],
        memory.seen.dtype,
    )

    def chosen(seen, otherwise):
        return jnp.where(seen[0] <= seen[1], seen, otherwise)

    step = chosen(memory.step_rewards, jnp.where(jnp.isfinite(allowed), allowed, 0.0))
    return RewardRange(step, chosen(memory.end_rewards, jnp.where(jnp.isfinite(allowed), allowed, step)))


def draw(key: Key[Array, ""], memory: Memory, count: int, otherwise: Float[Array, "n D"]) -> Float[Array, "n D"]:
    """States from the reservoir with replacement; `otherwise` while it is empty."""
    chosen = jax.random.randint(key, (count,), 0, jnp.maximum(known(memory), 1))
    return jnp.where(memory.count > 0, memory.states[chosen], otherwise)
