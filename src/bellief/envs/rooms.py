"""Rooms in a row, a large reward in the last one (the 7-room task of Luis et al. 2023, after rlberry's NRoom)."""

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_count, check_probability
from bellief.envs.grid import FLOOR, GOAL, WALL, GridLayout, GridView, parse_layout
from bellief.mdp.tabular_mdp import make_outcomes

# In the order of rlberry, and these directions as places in `grid.DIRECTIONS`.
ROOM_ACTIONS = ("left", "right", "up", "down")
ORDER = (3, 1, 0, 2)
ROOMS_A_ROW = 5


def rooms(rooms: int = 7, room_size: int = 5, success: float = 0.95, episode: int = 40) -> Environment:
    """`rooms` square rooms, five a row, joined in the shape of a snake by doors in the middle of their walls.

    The agent starts in the centre of the middle room. A step taken in the centre of the first room pays 0.1, in that of
    the middle room 0.01, in that of the last room 1. A move goes as chosen with probability `success` and otherwise to
    one of the other open neighbours; a move into a wall leaves the agent in place for certain. After `episode` steps
    the agent is put back, which is not an end of the MDP.

    The centre of the last room holds the agent until then, as the optimum of 19 that Luis et al. give for an
    episode of 40 steps implies (walking on from it, as the other cells allow, would halve that).

    >>> from bellief.envs.rooms import rooms
    >>> rooms().states, rooms().time_limit
    (181, 40)
    """
    count = check_count("rooms", rooms, least=3)
    room_size, success = check_count("room_size", room_size, least=2), check_probability("success", success)
    episode = check_count("episode", episode, least=1)
    grid, first = _layout(count, room_size)
    cells = len(grid.cells)
    moves = grid.steps[:, ORDER]
    goal = int(np.flatnonzero(grid.characters == GOAL)[0])

    # Outcomes are the four directions and staying.
    next_state = np.concatenate([moves, np.arange(cells)[:, None]], axis=1)
    open_ways = moves != np.arange(cells)[:, None]
    probability = np.zeros((cells, len(ROOM_ACTIONS), 5))
    for cell in range(cells):
        others = open_ways[cell].sum() - 1
        for action in range(len(ROOM_ACTIONS)):
            if cell == goal or not open_ways[cell, action]:
                probability[cell, action, 4] = 1.0
                continue
            probability[cell, action, :4] = open_ways[cell] * (1 - success) / max(others, 1)
            probability[cell, action, action] = success if others else 1.0
    reward = np.zeros(cells)
    reward[first], reward[grid.start], reward[goal] = 0.1, 0.01, 1.0
    return Environment(
        name="rooms",
        outcomes=make_outcomes(
            probability,
            np.repeat(next_state[:, None], len(ROOM_ACTIONS), axis=1),
            reward[:, None, None],
            single_start(cells, grid.start),
        ),
        action_names=ROOM_ACTIONS,
        parameters={"rooms": count, "room_size": room_size, "success": success, "episode": episode},
        view=GridView(grid),
        time_limit=episode,
    )


def _layout(count: int, size: int) -> tuple[GridLayout, int]:
    """The map, and the cell of the small reward in the first room."""
    columns, pitch, middle = min(count, ROOMS_A_ROW), size + 1, size // 2
    height, width = -(-count // ROOMS_A_ROW) * pitch - 1, columns * pitch - 1
    drawn = np.full((height, width), WALL)
    centres: list[tuple[int, int]] = []
    for number in range(count):
        row, place = divmod(number, ROOMS_A_ROW)
        column = place if row % 2 == 0 else columns - 1 - place
        top, left = row * pitch, column * pitch
        drawn[top : top + size, left : left + size] = FLOOR
        centre = (top + middle, left + middle)
        if centres:
            # The door lies half-way between two centres.
            before = centres[-1]
            if before[0] == centre[0]:
                drawn[centre[0], max(before[1], centre[1]) - middle - 1] = FLOOR
            else:
                drawn[centre[0] - middle - 1, centre[1]] = FLOOR
        centres.append(centre)
    drawn[centres[count // 2]], drawn[centres[-1]] = "S", GOAL
    grid = parse_layout(["".join(line) for line in drawn], start_character="S", special="")
    return grid, grid.cells.index(centres[0])
