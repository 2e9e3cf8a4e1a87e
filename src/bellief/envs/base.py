"""What every environment is: an outcome table, the names of its actions, and a way to show a state to a person."""

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from jaxtyping import UInt8

from bellief.errors import UserError
from bellief.mdp.tabular_mdp import Outcomes, TabularMDP, to_mdp
from bellief.registry import ENVIRONMENTS, find
from bellief.types import Spaces

if TYPE_CHECKING:
    from bellief.envs.box import BoxEnvironment
    from bellief.envs.grid import GridLayout


class View(Protocol):
    """How the states of one kind of environment are named and drawn; `layout` is None where there is no grid."""

    @property
    def layout(self) -> "GridLayout | None":
        """The map, if there is one."""

    def describe(self, state: int) -> str:
        """A person's name for the state."""

    def render_text(self, state: int) -> str:
        """The environment in plain characters."""

    def render_image(self, state: int) -> UInt8[np.ndarray, "height width 3"] | None:
        """A picture, None where there is no grid."""


@dataclass(frozen=True, eq=False)
class Environment:
    """A finite environment whose dynamics are known exactly.

    `outcomes` is the whole truth about it: the simulator steps from it, `mdp` condenses it for planners. `parameters`
    holds every argument of the constructor with the value used, so that `make(name, **parameters)` builds it again.
    After `time_limit` steps an episode is cut short and another begins, which is not an end of the MDP.

    >>> from bellief.envs import make
    >>> maze = make("maze")
    >>> maze.states, maze.mdp(discount=0.9).transition.shape, maze.describe(0)
    (264, (264, 4, 264), 'row 1, column 1 (start), no flags')
    >>> make(maze.name, **maze.parameters).outcomes.reward.shape == maze.outcomes.reward.shape
    True
    """

    name: str
    outcomes: Outcomes
    action_names: tuple[str, ...]
    parameters: dict[str, Any]
    view: View
    time_limit: int | None = None

    @property
    def states(self) -> int:
        """Number of states."""
        return self.outcomes.probability.shape[0]

    @property
    def actions(self) -> int:
        """Number of actions."""
        return self.outcomes.probability.shape[1]

    @property
    def layout(self) -> "GridLayout | None":
        """The map of a grid world, None for the others."""
        return self.view.layout

    def mdp(self, discount: float = 0.99) -> TabularMDP:
        """The exact model with mean rewards, for planners and for comparison with what was learned."""
        return to_mdp(self.outcomes, discount)

    def spaces(self) -> Spaces:
        """What an agent may know beforehand: sizes, whether episodes end, the range of single rewards."""
        possible = self.outcomes.probability > 0
        rewards = self.outcomes.reward[possible]
        mdp = self.mdp()
        # The end of an episode counts as one more outcome, in any state.
        different = (np.asarray(mdp.transition) > 0).sum(-1) + (np.asarray(mdp.termination) > 0)
        return Spaces(
            states=self.states,
            actions=self.actions,
            terminates=bool(self.outcomes.terminated[possible].any()),
            reward_low=float(rewards.min()),
            reward_high=float(rewards.max()),
            support=int(different.max()),
        )

    def describe(self, state: int) -> str:
        """A person's name for the state, such as "row 2, column 3, flags 1 and 3" (rows and columns count from 1)."""
        return self.view.describe(self._check_state(state))

    def render_text(self, state: int) -> str:
        """The environment in plain characters, the state in square brackets."""
        return self.view.render_text(self._check_state(state))

    def render_image(self, state: int) -> UInt8[np.ndarray, "height width 3"]:
        """A picture of a grid world with the agent in it; `UserError` for environments that have no grid."""
        image = self.view.render_image(self._check_state(state))
        if image is None:
            raise UserError(f"Environment '{self.name}' has no grid to draw: use render_text or render_mode='ansi'.")
        return image

    def _check_state(self, state: int) -> int:
        if not 0 <= state < self.states:
            raise UserError(f"Environment '{self.name}' has no state {state}: use one of 0..{self.states - 1}.")
        return int(state)


def make(name: str, **parameters: Any) -> Environment:
    """Build a registered environment with countable states by name; parameters it does not have are a `UserError`.

    >>> import bellief
    >>> chain = bellief.make("nchain", size=3)
    >>> chain.states, chain.actions, chain.action_names
    (3, 2, ('back', 'forward'))
    >>> bellief.make("maze", size=3)
    Traceback (most recent call last):
        ...
    bellief.errors.UserError: Environment 'maze' has no parameter 'size': use one of layout, slip.
    """
    environment = make_any(name, **parameters)
    if not isinstance(environment, Environment):
        raise UserError(f"The states of '{name}' cannot be counted: make it with bellief.envs.make_any instead.")
    return environment


def make_any(name: str, **parameters: Any) -> "Environment | BoxEnvironment":
    """Build a registered environment of either kind by name; parameters it does not have are a `UserError`."""
    constructor = find(ENVIRONMENTS, "environment", name).load()
    known = tuple(inspect.signature(constructor).parameters)
    for parameter in parameters:
        if parameter not in known:
            raise UserError(f"Environment '{name}' has no parameter '{parameter}': use one of {', '.join(known)}.")
    return constructor(**parameters)


def single_start(states: int, start: int) -> np.ndarray:
    """The start distribution of an environment that always begins in `start`."""
    distribution = np.zeros(states)
    distribution[start] = 1.0
    return distribution
