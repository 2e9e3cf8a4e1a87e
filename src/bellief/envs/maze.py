"""Maze: collect flags, then bring them to the goal (the flag maze of Dearden et al. 1998)."""

from collections.abc import Callable, Sequence

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_probability
from bellief.envs.grid import ACTION_NAMES, FLAG, GOAL, GridView, moves_with_slip, parse_layout
from bellief.errors import require
from bellief.mdp.tabular_mdp import make_outcomes

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
    return flag_task("maze", layout, slip, _pay_on_entering)


def _pay_on_entering(goal, entered, earned, start, next_state, reward) -> None:
    next_state[...] = np.where(goal[entered], start, next_state)
    reward[...] = np.where(goal[entered], earned, 0)
    start_cell = start // next_state.shape[1]
    next_state[goal] = next_state[start_cell, 0]
    reward[goal] = reward[start_cell, 0]


def flag_task(name: str, layout: str | Sequence[str], slip: float, pay: Callable[..., None]) -> Environment:
    """A task of collecting flags. `pay(goal, entered, earned, start, next_state, reward)` writes the goal's effect into
    `next_state` and `reward` [cell, flags held, action, outcome], which hold moves and flags.

    `goal` marks the goal's cells, `entered` [cell, 1, action, outcome] is the cell that an outcome leads to, `earned`
    is the number of flags held, and `start` the state in which a round begins.
    """
    slip = check_probability("slip", slip)
    grid = parse_layout(layout, start_character="S", special=FLAG)
    require(grid.flags, f"The layout has no flags, hence no rewards: mark at least one cell with '{FLAG}'.")

    flag_sets = 2 ** len(grid.flags)
    probability, entered = moves_with_slip(grid, slip)
    flag_bit = np.zeros(len(grid.cells), dtype=int)
    flag_bit[list(grid.flags)] = 2 ** np.arange(len(grid.flags))

    # Axes [cell, flags held, action, outcome].
    held = np.arange(flag_sets)[None, :, None, None]
    entered = entered[:, None]
    next_state = entered * flag_sets + (held | flag_bit[entered])
    reward = np.zeros(next_state.shape)
    earned = sum(held >> flag & 1 for flag in range(len(grid.flags)))
    start = grid.start * flag_sets
    pay(grid.characters == GOAL, entered, earned, start, next_state, reward)

    states = len(grid.cells) * flag_sets
    shape = (states, len(ACTION_NAMES), len(probability))
    return Environment(
        name=name,
        outcomes=make_outcomes(
            np.broadcast_to(probability, shape),
            next_state.reshape(shape),
            reward.reshape(shape),
            single_start(states, start),
        ),
        action_names=ACTION_NAMES,
        parameters={"layout": grid.rows, "slip": slip},
        view=GridView(grid),
    )
