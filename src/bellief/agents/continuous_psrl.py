"""Posterior sampling for continuous states: solve one model drawn from the posterior, follow it until the next update.

The model is solved by fitted Q-iteration, as BBI's are: this is BBI with a single model and a longer look-ahead, which
starts where the last plan ended.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import continuous_bbi as bbi
from bellief.beliefs import linear
from bellief.types import BoxSpaces, Transition


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; all mean what they mean in `continuous_bbi`."""

    discount: float = 0.99
    horizon: int = 50
    states: int = 400
    dynamics: str = "difference"
    dynamics_features: str | None = None
    value_features: str | None = None
    final: str = "previous"
    ending: str | None = None
    prior: linear.Prior = linear.OWN_PRIOR

    def __post_init__(self):
        self.with_one_model()

    def with_one_model(self) -> bbi.Config:
        """The same settings for BBI."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return bbi.Config(mdps=1, **own)


State = bbi.State


class Info(NamedTuple):
    """The sampled model's values where they were fitted, averaged."""

    value_mean: Float[Array, ""]


def init(key: Key[Array, ""], config: Config, spaces: BoxSpaces) -> State:
    """Nothing learned."""
    return bbi.init(key, config.with_one_model(), spaces)


def plan(key: Key[Array, ""], config: Config, spaces: BoxSpaces, state: State) -> tuple[State, Info]:
    """Draw a model, solve it, keep the weights of its Q."""
    state, info = bbi.plan(key, config.with_one_model(), spaces, state)
    return state, Info(jnp.mean(info.value_mean))


def act(key: Key[Array, ""], config: Config, state: State, observation: Float[Array, "D"]) -> Int[Array, ""]:
    """The best action in the sampled model."""
    return bbi.act(key, config.with_one_model(), state, observation)


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition."""
    return bbi.update(config.with_one_model(), state, transition)


def policy(config: Config, state: State, observation: Float[Array, "D"]) -> Float[Array, "A"]:
    """Action probabilities in a state."""
    return bbi.policy(config.with_one_model(), state, observation)
