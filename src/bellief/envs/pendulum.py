"""InvertedPendulum: keep a pole upright by pushing its cart left, not at all, or right (Lagoudakis and Parr 2003).

The force u in {-50, 0, 50} N carries noise, uniform in [-10, 10], and is held for 0.1 s. Falling past a right angle
pays -1 and ends the episode, every other step pays 0; after 3,000 steps the pole counts as balanced and is put up
again.

Ours: published programs differ in the integrator; we take a Runge-Kutta step of fourth order. Episodes begin within
0.05 of (0, 0), uniformly.
"""

import functools
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from bellief.envs.box import BoxEnvironment, Outcome, numbers_as_text
from bellief.types import BoxSpaces

GRAVITY, POLE_MASS, CART_MASS, LENGTH = 9.8, 2.0, 8.0, 0.5
FORCE, NOISE, PERIOD = 50.0, 10.0, 0.1
START = 0.05
TIME_LIMIT = 3000
FASTEST = 5.0  # angular velocities beyond this are hardly ever survived


def acceleration(angle: Float[Array, ""], velocity: Float[Array, ""], force: Float[Array, ""]) -> Float[Array, ""]:
    """Angular acceleration of the pole."""
    share = 1 / (POLE_MASS + CART_MASS)
    pole = share * POLE_MASS * LENGTH
    pull = GRAVITY * jnp.sin(angle) - pole * velocity**2 * jnp.sin(2 * angle) / 2 - share * jnp.cos(angle) * force
    return pull / (4 * LENGTH / 3 - pole * jnp.cos(angle) ** 2)


def fallen(state: Float[Array, "2"]) -> Bool[Array, ""]:
    """Whether the pole has passed the horizontal."""
    return jnp.abs(state[0]) > jnp.pi / 2


def move(state: Float[Array, "2"], force: Float[Array, ""]) -> Float[Array, "2"]:
    """The state after the force was held for one period (one Runge-Kutta step)."""

    def slope(now):
        return jnp.stack([now[1], acceleration(now[0], now[1], force)])

    first = slope(state)
    second = slope(state + PERIOD / 2 * first)
    third = slope(state + PERIOD / 2 * second)
    fourth = slope(state + PERIOD * third)
    return state + PERIOD / 6 * (first + 2 * second + 2 * third + fourth)


def start(constants: tuple, uniforms: Float[Array, "2"]) -> Float[Array, "2"]:
    """Nearly upright and at rest."""
    del constants
    return START * (2 * uniforms - 1)


def step(constants: tuple, state: Float[Array, "2"], action: Int[Array, ""], uniforms: Float[Array, "2"]) -> Outcome:
    """Push."""
    del constants
    force = FORCE * (action.astype(state.dtype) - 1) + NOISE * (2 * uniforms[0] - 1)
    following = move(state, force)
    fell = fallen(following)
    return Outcome(following, jnp.where(fell, -1.0, 0.0).astype(state.dtype), fell)


@functools.cache  # the same object each time, so that loops compile for it once
def pendulum() -> BoxEnvironment:
    """The environment; it has no parameters.

    >>> from bellief.envs.pendulum import pendulum
    >>> pendulum().spaces.dimension, pendulum().action_names, pendulum().time_limit
    (2, ('left', 'none', 'right'), 3000)
    """
    return BoxEnvironment(
        name="pendulum",
        spaces=BoxSpaces(
            dimension=2,
            actions=3,
            low=(-np.pi / 2, -FASTEST),
            high=(np.pi / 2, FASTEST),
            terminates=True,
            reward_low=-1.0,
            reward_high=0.0,
            termination=fallen,
            start_low=(-START, -START),
            start_high=(START, START),
        ),
        action_names=("left", "none", "right"),
        parameters={},
        constants=lambda run: (),
        start=start,
        step=step,
        noise=2,
        view=PendulumView(),
        observation_bound=(2 * np.pi, 50.0),
        time_limit=TIME_LIMIT,
    )


@dataclass(frozen=True)
class PendulumView:
    """Shows the pole on its cart."""

    def render_text(self, state: np.ndarray) -> str:
        """Angle and velocity."""
        return f"angle, velocity {numbers_as_text(state)}"

    def render_image(self, state: np.ndarray) -> UInt8[np.ndarray, "height width 3"]:
        """The pole, its cart and the floor."""
        from bellief.envs.draw import draw_pendulum

        return draw_pendulum(float(state[0]))
