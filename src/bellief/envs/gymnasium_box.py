"""Any Gymnasium environment with Box observations and countable actions, its observations flattened to vectors."""

import importlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bellief.envs.discrete import Index, make_gymnasium
from bellief.errors import UserError
from bellief.types import BoxSpaces

# Some environments declare the largest float as a bound, which is no bound.
LARGEST_BOUND = 1e6


def has_box(env: gymnasium.Env) -> bool:
    """Whether the observations are vectors."""
    return isinstance(env.observation_space, spaces.Box)


def box_spaces(env: gymnasium.Env, name: str, termination: Callable[..., Any] | None = None) -> BoxSpaces:
    """What an agent may know of a real environment: sizes and bounds. Rewards and ends are unknown."""
    box = env.observation_space
    assert isinstance(box, spaces.Box)
    if not np.issubdtype(box.dtype, np.floating) or len(box.shape) > 1:
        raise UserError(f"The observations of {name} look like pictures; only vectors of floats can be learned from.")
    if isinstance(env.action_space, spaces.Box):
        raise UserError(f"The actions of {name} are a Box, and agents choose among countable ones; wrap it.")
    low, high = np.ravel(box.low).astype(float), np.ravel(box.high).astype(float)
    return BoxSpaces(
        dimension=low.size,
        actions=Index.of(env.action_space, f"The actions of {name}").size,
        low=tuple(value if abs(value) < LARGEST_BOUND else None for value in low.tolist()),
        high=tuple(value if abs(value) < LARGEST_BOUND else None for value in high.tolist()),
        terminates=True,
        reward_low=None,
        reward_high=None,
        termination=termination,
    )


def find_function(given: Any) -> Callable[..., Any] | None:
    """A termination function as it is, or from its address `module:function`."""
    if given is None or callable(given):
        return given
    module, _, attribute = str(given).partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"The termination function '{given}' cannot be imported ({error}); give it as module:function."
        ) from None


def open_gymnasium(name: str, parameters: dict[str, Any]) -> tuple[gymnasium.Env, dict[str, Any], Any]:
    """The environment, the parameters that are its own, and the termination function among them."""
    own = dict(parameters)
    termination = find_function(own.pop("termination", None))
    return make_gymnasium(name, **own), own, termination
