"""Grid5 and Grid10: walk to the far corner of a square, again and again (Guez et al. 2012)."""

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_count, check_probability
from bellief.envs.grid import ACTION_NAMES, FLOOR, GOAL, GridView, moves_with_slip, parse_layout
from bellief.mdp.tabular_mdp import make_outcomes


def grid5(size: int = 5, slip: float = 0.2) -> Environment:
    """A square of `size` x `size` cells; every step taken in the far corner pays 1 and leads back to the start.

    A move goes as chosen with probability `1 - slip` and to either side with `slip / 2`; the edge leaves the agent in
    place. States are the cells in reading order; nothing terminates.

    >>> from bellief.envs.corner_grid import grid5
    >>> grid5().states, grid5().mdp().reward[24].tolist()
    (25, [1.0, 1.0, 1.0, 1.0])
    """
    return _build("grid5", size, slip)


def grid10(size: int = 10, slip: float = 0.2) -> Environment:
    """The rules of `grid5` on 10 x 10 cells.

    >>> from bellief.envs.corner_grid import grid10
    >>> grid10().states
    100
    """
    return _build("grid10", size, slip)


def _build(name: str, size: int, slip: float) -> Environment:
    size, slip = check_count("size", size, least=2), check_probability("slip", slip)
    rows = ["S" + FLOOR * (size - 1), *([FLOOR * size] * (size - 2)), FLOOR * (size - 1) + GOAL]
    grid = parse_layout(rows, start_character="S", special="")
    probability, next_state = moves_with_slip(grid, slip)
    corner = len(grid.cells) - 1
    reward = np.zeros(next_state.shape)
    next_state[corner], reward[corner] = grid.start, 1.0
    return Environment(
        name=name,
        outcomes=make_outcomes(
            np.broadcast_to(probability, next_state.shape),
            next_state,
            reward,
            single_start(len(grid.cells), grid.start),
        ),
        action_names=ACTION_NAMES,
        parameters={"size": size, "slip": slip},
        view=GridView(grid),
    )
