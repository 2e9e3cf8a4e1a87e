"""Maze: collect flags, then bring them to the goal (the flag maze of Dearden et al. 1998)."""

from collections.abc import Sequence

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_probability
from bellief.envs.grid import ACTION_NAMES, FLAG, GOAL, GridView, moves_with_slip, parse_layout
from bellief.errors import UserError
from bellief.mdp.tabular import make_outcomes

LAYOUT = """\
S#F.#.G
.#..#..
.......
##...##
......F
F.....#
"""


def maze(layout: str | Sequence[str] = LAYOUT, slip: float = 0.1) -> Environment:
    """Walk from S over the flags (F) to G; the default map has 33 cells and 3 flags, hence 264 states.

    A move goes as chosen with probability `1 - slip` and to either side with `slip / 2`; a wall (#) or the edge of the
    map leaves the agent in place. Entering a flag's cell collects the flag. Entering G pays the number of flags held,
    and the same step carries the agent back to S without flags. Every other step pays nothing, nothing terminates.

    `state = cell * 2**flags + held`: cells in reading order, walls left out, and bit `i` of `held` for the i-th flag
    in reading order. The agent never stands on G; so that no state is without dynamics, the states of that cell
    behave as S without flags does. The agent is never on a flag's cell without that flag either, where a step that
    bumps into a wall would collect it. Of the 264 states 244 can be reached.

    >>> from bellief.envs.maze import maze
    >>> maze().states, maze(layout=["SF", ".G"]).states
    (264, 8)
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
    next_state = np.where(goal[entered], grid.start * flag_sets, entered * flag_sets + (held | flag_bit[entered]))
    reward = np.where(goal[entered], sum(held >> flag & 1 for flag in range(len(grid.flags))), 0)
    next_state[goal] = next_state[grid.start, 0]
    reward[goal] = reward[grid.start, 0]

    states = len(grid.cells) * flag_sets
    shape = (states, len(ACTION_NAMES), len(probability))
    return Environment(
        name="maze",
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
