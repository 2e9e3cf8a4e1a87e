"""The flag maze as Guez et al. (2012) run it: the reward is paid by a step taken in the goal."""

from collections.abc import Sequence

from bellief.envs.base import Environment
from bellief.envs.maze import LAYOUT, flag_task


def dearden_maze(layout: str | Sequence[str] = LAYOUT, slip: float = 0.1) -> Environment:
    """The map and the moves of `maze`, but the agent stands on G for a step: every action there pays the number
    of flags held and leads back to S without flags. A round takes one step more than in `maze`.

    >>> from bellief.envs.dearden_maze import dearden_maze
    >>> maze = dearden_maze()
    >>> maze.states, float(maze.mdp().reward.max())
    (264, 3.0)
    """
    return flag_task("dearden-maze", layout, slip, _pay_in_the_goal)


def _pay_in_the_goal(goal, entered, earned, start, next_state, reward) -> None:
    del entered
    next_state[goal], reward[goal] = start, earned[0]
