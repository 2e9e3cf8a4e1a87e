"""The environments under Gymnasium's interface: `gymnasium.make("bellief:NChain-v0", slip=0.1)`."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded

from bellief.envs.base import Environment, make, make_any
from bellief.envs.box import BoxEnvironment
from bellief.errors import UserError


class _SteppedEnv(gymnasium.Env):
    """What both kinds share: an episode must be begun, actions must exist, states are shown as text or as pictures."""

    environment: Any
    _state: Any = None
    _ended = False

    def _set_up(self, environment: Any, actions: int, pictures: bool, render_mode: str | None) -> None:
        if not pictures:
            self.metadata = {**self.metadata, "render_modes": ["ansi"]}
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise UserError(
                f"Environment '{environment.name}' has no render_mode '{render_mode}': use one of {', '.join(modes)}."
            )
        self.environment, self.render_mode = environment, render_mode
        self.action_space, self._actions = gymnasium.spaces.Discrete(actions), actions

    def _current_state(self) -> Any:
        if self._state is None:
            raise ResetNeeded("No episode has begun: call reset() first.")
        return self._state

    def _check_action(self, action: int) -> None:
        self._current_state()
        if self._ended:
            raise ResetNeeded("The episode has ended: call reset() to begin another.")
        if not self.action_space.contains(action):
            raise InvalidAction(f"Action {action!r} is not one of 0..{self._actions - 1}.")

    def render(self) -> str | np.ndarray | None:
        """The current state as text or as a picture, as `render_mode` says."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render_mode: pass one of the modes in metadata to make().")
            return None
        shown = self.environment.render_text if self.render_mode == "ansi" else self.environment.render_image
        return shown(self._current_state())


class TabularGymnasiumEnv(_SteppedEnv):
    """A Gymnasium environment that steps an outcome table.

    Pass an `Environment`, or the `name` of one together with its parameters. Observations are state numbers.
    The `info` of a step holds the probability of what happened ("prob"), that of a reset the probability of the start
    state. There is no time limit: use `gymnasium.make(..., max_episode_steps=...)`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's type)

    def __init__(
        self,
        environment: Environment | None = None,
        *,
        name: str | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ):
        if (environment is None) == (name is None):
            raise UserError("TabularGymnasiumEnv needs either an environment or the name of one: pass one of the two.")
        if name is not None:
            environment = make(name, **parameters)
        elif parameters:
            raise UserError(
                "An environment that is built already takes no parameters: pass them with its name instead."
            )
        assert environment is not None
        self._set_up(environment, environment.actions, environment.layout is not None, render_mode)
        self.observation_space = gymnasium.spaces.Discrete(environment.states)
        self._cumulative = np.cumsum(environment.outcomes.probability, axis=-1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode in a state drawn from the start distribution; there are no options."""
        super().reset(seed=seed)
        start = self.environment.outcomes.start
        self._state, self._ended = int(self.np_random.choice(len(start), p=start)), False
        return self._state, {"prob": float(start[self._state])}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Draw one outcome of the action; never truncates."""
        self._check_action(action)
        outcomes, pair = self.environment.outcomes, (self._state, action)
        cumulative = self._cumulative[pair]
        # Scaled by the rounded sum and searched from the right, an outcome of probability zero is never drawn.
        drawn = int(np.searchsorted(cumulative, self.np_random.random() * cumulative[-1], side="right"))
        where = (*pair, drawn)
        self._state, self._ended = int(outcomes.next_state[where]), bool(outcomes.terminated[where])
        info = {"prob": float(outcomes.probability[where])}
        return self._state, float(outcomes.reward[where]), self._ended, False, info


class BoxGymnasiumEnv(_SteppedEnv):
    """One of our continuous environments as a Gymnasium environment: `gymnasium.make("bellief:LinearModel-v0")`.

    There is no time limit: use `gymnasium.make(..., max_episode_steps=...)`. In a family of problems the
    member is a parameter, and the first one where it is not given.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's type)

    def __init__(self, *, name: str, render_mode: str | None = None, **parameters: Any):
        environment = make_any(name, **parameters)
        if not isinstance(environment, BoxEnvironment):
            raise UserError(f"The states of '{name}' can be counted: use TabularGymnasiumEnv for it.")
        zero = np.zeros(environment.spaces.dimension, np.float32)
        pictures = environment.view.render_image(zero) is not None
        self._set_up(environment, environment.spaces.actions, pictures, render_mode)
        bound = np.asarray(environment.observation_bound, np.float32)
        self.observation_space = gymnasium.spaces.Box(-bound, bound, dtype=np.float32)
        constants = environment.constants(0)
        self._start = jax.jit(lambda noise: environment.start(constants, noise))
        self._step = jax.jit(lambda state, action, noise: environment.step(constants, state, action, noise))

    def _noise(self) -> np.ndarray:
        return self.np_random.random(self.environment.noise).astype(np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; there are no options."""
        super().reset(seed=seed)
        self._state, self._ended = np.array(self._start(self._noise()), np.float32), False
        return self._state.copy(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take an action; never truncates."""
        self._check_action(action)
        outcome = self._step(self._state, np.int32(action), self._noise())
        self._state, self._ended = np.array(outcome.state, np.float32), bool(outcome.terminated)
        return self._state.copy(), float(outcome.reward), self._ended, False, {}
