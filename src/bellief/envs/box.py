"""What every compiled continuous environment is: pure functions of a state, an action and some uniform numbers."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float, Int, UInt8

from bellief.errors import UserError
from bellief.types import BoxSpaces


class Outcome(NamedTuple):
    """What a step leads to."""

    state: Float[Array, "D"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]


class BoxView(Protocol):
    """How a state is shown to a person."""

    def render_text(self, state: np.ndarray) -> str:
        """The state in plain characters."""

    def render_image(self, state: np.ndarray) -> UInt8[np.ndarray, "height width 3"] | None:
        """A picture, None where there is none."""


@dataclass(frozen=True, eq=False)
class BoxEnvironment:
    """A continuous environment with countable actions that can be compiled.

    `constants(run)` are the arrays of run number `run`; in a family of problems every run may have
    another member. `start` and `step` take them first, and get `noise` uniform draws in place of a random key.
    No observation exceeds `observation_bound` in size, not even the one that an episode ends in.
    After `time_limit` steps an episode is truncated and another begins, which is not an end of the MDP.

    >>> import numpy as np
    >>> from bellief.envs import make_any
    >>> pole = make_any("pendulum")
    >>> state = pole.start(pole.constants(0), np.full(pole.noise, 0.5, np.float32))
    >>> after = pole.step(pole.constants(0), state, np.array(1), np.full(pole.noise, 0.5, np.float32))
    >>> type(pole).__name__, state.tolist(), bool(after.terminated)
    ('BoxEnvironment', [0.0, 0.0], False)
    """

    name: str
    spaces: BoxSpaces
    action_names: tuple[str, ...]
    parameters: dict[str, Any]
    constants: Callable[[int], Any]
    start: Callable[[Any, Float[Array, "noise"]], Float[Array, "D"]]
    step: Callable[[Any, Float[Array, "D"], Int[Array, ""], Float[Array, "noise"]], Outcome]
    noise: int
    view: BoxView
    observation_bound: tuple[float, ...]
    time_limit: int | None = None

    @property
    def luck(self) -> int:
        """Deprecated name of `noise`."""
        warnings.warn("BoxEnvironment.luck is called noise now.", DeprecationWarning, stacklevel=2)
        return self.noise

    def render_text(self, state: np.ndarray) -> str:
        """The state in plain characters."""
        return self.view.render_text(np.asarray(state))

    def render_image(self, state: np.ndarray) -> UInt8[np.ndarray, "height width 3"]:
        """A picture of the state; `UserError` for environments that have none."""
        image = self.view.render_image(np.asarray(state))
        if image is None:
            raise UserError(f"Environment '{self.name}' has no picture: use render_text or render_mode='ansi'.")
        return image


def normal(uniform: Float[Array, "n"]) -> Float[Array, "n"]:
    """Standard normal numbers from uniform ones; the very ends of the unit interval are cut off."""
    edge = 1e-7
    return ndtri(jnp.clip(uniform, edge, 1 - edge))


def numbers_as_text(state: np.ndarray) -> str:
    """A vector for people."""
    return "[" + " ".join(f"{value:+.3f}" for value in state) + "]"
