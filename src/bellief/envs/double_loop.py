"""DoubleLoop: a loop that pays little and one that pays more but is easy to fall out of (Dearden et al. 1998)."""

from dataclasses import dataclass

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_count, check_number
from bellief.envs.nchain import bracketed
from bellief.mdp.tabular_mdp import make_outcomes


def double_loop(left_reward: float = 2.0, right_reward: float = 1.0, length: int = 5) -> Environment:
    """Two loops of `length` steps that share state 0, the start; deterministic, never ends.

    In state 0 action 0 enters the right loop (states 1 to `length - 1`) and action 1 the left one (the states after
    those). In the right loop both actions lead on. In the left loop only action 1 does; action 0 falls back to
    state 0. The last state of a loop leads to state 0 by either action and pays the loop's reward; every other step
    pays nothing. With the default length there are 9 states.

    >>> from bellief.envs.double_loop import double_loop
    >>> loops = double_loop()
    >>> loops.states, loops.mdp().reward.max().item()
    (9, 2.0)
    """
    left_reward, right_reward = check_number("left_reward", left_reward), check_number("right_reward", right_reward)
    length = check_count("length", length, least=2, most=10_000)

    states = 2 * length - 1
    right_end, left_end = length - 1, states - 1
    next_state = np.repeat(np.arange(1, states + 1)[:, None], 2, axis=1)
    next_state[0] = [1, length]
    next_state[length:, 0] = 0
    next_state[[right_end, left_end]] = 0
    reward = np.zeros((states, 2))
    reward[right_end], reward[left_end] = right_reward, left_reward
    return Environment(
        name="doubleloop",
        outcomes=make_outcomes(
            np.ones((states, 2, 1)), next_state[..., None], reward[..., None], single_start(states, 0)
        ),
        action_names=("right", "left"),
        parameters={"left_reward": left_reward, "right_reward": right_reward, "length": length},
        view=LoopView(length),
    )


@dataclass(frozen=True)
class LoopView:
    """Names and draws the states of two loops."""

    length: int
    layout: None = None

    def describe(self, state: int) -> str:
        """The loop and how many steps into it the state lies."""
        if state == 0:
            return "crossing (start)"
        if state < self.length:
            return f"right loop, step {state}"
        return f"left loop, step {state - self.length + 1}"

    def render_text(self, state: int) -> str:
        """One line for each loop; the crossing begins and ends both."""
        left = (0, *range(self.length, 2 * self.length - 1), 0)
        right = (0, *range(1, self.length), 0)
        return f"left  {bracketed(left, state, ' > ')}\nright {bracketed(right, state, ' > ')}"

    def render_image(self, state: int) -> None:
        """The loops have no picture."""
        return None
