"""LinearModel: a family of linear systems that stay inside a ball only if the right matrix is applied in each state.

The paper prints s' = A_a s and r = b_a . s with 4 dimensions and 11 actions, and nothing else. The rest is ours:

- Member m of the family has A_a = exp(0.25 G_a), where G_a has independent N(0, 1/4) entries, drawn from the seed
  sequence (2020, m): a few actions have a spectral radius below one, most stretch some directions and shrink others.
- b_a has a random direction and length 0.01; leaving the unit ball costs 1 more and ends the episode. An action is
  judged by where it leads, then, and hardly by what it pays.
- s' carries independent Gaussian noise of standard deviation 0.05, without which the origin would be a safe place for
  ever; `noise=0` is the print. Episodes begin at N(0, 0.1^2) in each dimension and are cut after 3,000 steps.

In the first eight members (64 episodes each) a policy that picks actions at random survives 20 to 35 steps on average.
The one that always moves as close to the origin as the true matrices allow survives 3,000, and 1,554 in member 7.
Repeating the best single action survives anything from 40 to 3,000.

Results are reported on members 0 to 99, run n on member n. Members from 1000 on are for development.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bellief.envs.box import BoxEnvironment, Outcome, normal, numbers_as_text
from bellief.envs.checks import check_count, check_number
from bellief.errors import require
from bellief.types import BoxSpaces

DIMENSION, ACTIONS = 4, 11
RATE, RADIUS, START_SD, REWARD_LENGTH = 0.25, 1.0, 0.1, 0.01
LEAVING = -1.0
TIME_LIMIT = 3000
FAMILY = 2020


class Constants(NamedTuple):
    """One member of the family."""

    transition: Float[Array, "A D D"]
    reward: Float[Array, "A D"]
    noise: Float[Array, ""]


@functools.lru_cache(maxsize=256)
def member(number: int) -> tuple[Any, Any]:
    """The matrices A_a and the vectors b_a of a member of the family."""
    from scipy.linalg import expm

    generator = np.random.default_rng([FAMILY, number])
    generators = generator.normal(size=(ACTIONS, DIMENSION, DIMENSION)) / np.sqrt(DIMENSION)
    direction = generator.normal(size=(ACTIONS, DIMENSION))
    reward = REWARD_LENGTH * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return np.stack([expm(RATE * one) for one in generators]), reward


def outside(state: Float[Array, "D"]) -> Bool[Array, ""]:
    """Whether a state has left the ball."""
    return jnp.sum(state**2) > RADIUS**2


def start(constants: Constants, uniforms: Float[Array, "4"]) -> Float[Array, "D"]:
    """Near the origin."""
    del constants
    return START_SD * normal(uniforms)


def step(
    constants: Constants, state: Float[Array, "D"], action: Int[Array, ""], uniforms: Float[Array, "4"]
) -> Outcome:
    """Apply the action's matrix."""
    following = constants.transition[action] @ state + constants.noise * normal(uniforms)
    left = outside(following)
    reward = constants.reward[action] @ state + jnp.where(left, LEAVING, 0.0)
    return Outcome(following, reward, left)


@functools.cache  # the same object each time, so that loops compile for it once
def linear_model(member_number: int | None = None, noise: float = 0.05) -> BoxEnvironment:
    """The family, run n meeting member n, or one member of it for all runs.

    >>> from bellief.envs.linear_model import linear_model
    >>> family = linear_model(noise=0.0)
    >>> family.spaces.actions, family.constants(0).transition.shape, family.constants(1).noise.item()
    (11, (11, 4, 4), 0.0)
    """
    if member_number is not None:
        member_number = check_count("member_number", member_number, least=0)
    noise = check_number("noise", noise)
    require(noise >= 0, f"Parameter 'noise' is {noise!r}: set it to a number of at least 0.")

    def constants(run: int) -> Constants:
        transition, reward = member(run if member_number is None else member_number)
        return Constants(jnp.asarray(transition, float), jnp.asarray(reward, float), jnp.asarray(noise, float))

    return BoxEnvironment(
        name="linear-model",
        spaces=BoxSpaces(
            dimension=DIMENSION,
            actions=ACTIONS,
            low=(-RADIUS,) * DIMENSION,
            high=(RADIUS,) * DIMENSION,
            terminates=True,
            reward_low=LEAVING - REWARD_LENGTH * RADIUS,
            reward_high=REWARD_LENGTH * RADIUS,
            termination=outside,
            start_low=(-2 * START_SD,) * DIMENSION,
            start_high=(2 * START_SD,) * DIMENSION,
        ),
        action_names=tuple(f"matrix {number}" for number in range(ACTIONS)),
        parameters={"member_number": member_number, "noise": noise},
        constants=constants,
        start=start,
        step=step,
        noise=DIMENSION,
        view=VectorView(),
        observation_bound=(10.0,) * DIMENSION,
        time_limit=TIME_LIMIT,
    )


@dataclass(frozen=True)
class VectorView:
    """Shows the numbers and how far from the edge they are."""

    def render_text(self, state: np.ndarray) -> str:
        """The state and its length."""
        return f"{numbers_as_text(state)} length {np.linalg.norm(state):.3f} of {RADIUS:g}"

    def render_image(self, state: np.ndarray) -> None:
        """Four dimensions have no picture."""
        return None
