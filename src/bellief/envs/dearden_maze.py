"""The flag maze as Guez et al. (2012) run it: the reward is paid by a step taken in the goal."""

from collections.abc import Sequence

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_probability
from bellief.envs.grid import ACTION_NAMES, FLAG, GOAL, GridView, moves_with_slip, parse_layout
from bellief.envs.maze import LAYOUT
from bellief.errors import UserError
from bellief.mdp.tabular import make_outcomes


def dearden_maze(layout: str | Sequence[str] = LAYOUT, slip: float = 0.1) -> Environment:
    """The map and the moves of `maze`, but the agent stands on G for a step: whatever it does there pays the number
    of flags held and leads back to S without flags. A round takes one step more than in `maze`.

    >>> from bellief.envs.dearden_maze import dearden_maze
    >>> maze = dearden_maze()
    >>> maze.states, float(maze.mdp().reward.max())
    (264, 3.0)
    """
    slip = check_probability("slip", slip)
    grid = parse_layout(layout, start_character="S", special=FLAG)
    if not grid.flags:
        raise UserError(f"The layout has no flags, hence no rewards: mark at least one cell with '{FLAG}'.")

    flag_sets = 2 ** len(grid.flags)
    probability, entered = moves_with_slip(grid, slip)
    flag_bit = np.zeros(len(grid.cells), dtype=int)
    flag_bit[list(grid.flags)] = 2 ** np.arange(len(grid.flags))
    goal = grid.characters == GOAL

    # Axes [cell, flags held, action, outcome].
    held = np.arange(flag_sets)[None, :, None, None]
    entered = entered[:, None]
    next_state = entered * flag_sets + (held | flag_bit[entered])
    reward = np.zeros(next_state.shape)
    next_state[goal] = grid.start * flag_sets
    reward[goal] = sum(held[0] >> flag & 1 for flag in range(len(grid.flags)))

    states = len(grid.cells) * flag_sets
    shape = (states, len(ACTION_NAMES), len(probability))
    return Environment(
        name="dearden-maze",
        outcomes=make_outcomes(
            np.broadcast_to(probability, shape),
            next_state.reshape(shape),
            reward.reshape(shape),
            single_start(states, grid.start * flag_sets),
        ),
        action_names=ACTION_NAMES,
        parameters={"layout": grid.rows, "slip": slip},
        view=GridView(grid),
    )
