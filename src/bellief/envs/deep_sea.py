"""DeepSea: a treasure that only one of 2^size ways leads to, the field's test of exploration (Osband et al. 2019)."""

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_count, check_number
from bellief.envs.grid import FLOOR, GOAL, GridView, parse_layout
from bellief.errors import UserError
from bellief.mdp.tabular_mdp import make_outcomes

LEFT, RIGHT = 0, 1


def deep_sea(
    size: int = 10, stochastic: bool = False, move_cost: float = 0.01, mapping_seed: int | None = None
) -> Environment:
    """A square of `size` rows; every step leads one row down, and an episode ends after the last row.

    The start is at the top left. Action 0 moves to the left, action 1 to the right at a cost of `move_cost / size`; the
    edges stop a move, not the fall. Moving right in the right-most cell of the last row pays 1 more. An optimal episode
    returns 1 - `move_cost`; every other one returns 0 or less. States are the cells in reading order, those above the
    diagonal included, which cannot be reached.

    `stochastic` is the variant of Osband et al. (2020): a move to the right does nothing with probability 1 / `size`,
    and in the two corners of the last row noise of variance 1 is added to the reward. Deviation: their noise is
    Gaussian, ours is -1 or 1 with equal probability, so that outcomes can be counted.

    With a `mapping_seed` the direction that action 1 takes is drawn anew for every cell (the other action takes the
    other one); without it action 1 is *right* everywhere, as in the results of Luis et al. (2023).

    >>> from bellief.envs.deep_sea import deep_sea
    >>> sea = deep_sea(size=3)
    >>> sea.states, sea.mdp(discount=1.0).reward[8].round(4).tolist()
    (9, [0.0, 0.9967])
    """
    size = check_count("size", size, least=2)
    move_cost = check_number("move_cost", move_cost)
    if not isinstance(stochastic, bool):
        raise UserError(f"Parameter 'stochastic' is {stochastic!r}: set it to true or false.")
    if mapping_seed is not None:
        mapping_seed = check_count("mapping_seed", mapping_seed, least=0)

    row, column = np.divmod(np.arange(size * size), size)
    # Indexed [state, direction].
    moved = np.clip(column[:, None] + np.array([-1, 1]), 0, size - 1)
    last, right_corner = row == size - 1, (row == size - 1) & (column == size - 1)
    paid = np.zeros((size * size, 2))
    paid[:, RIGHT] = -move_cost / size
    paid[right_corner, RIGHT] += 1.0
    below = np.minimum(row + 1, size - 1)[:, None]

    # Outcomes: whether the move happens, and which way the noise goes.
    slip = np.array([0.0, 1 / size if stochastic else 0.0])
    corner = last & np.isin(column, (0, size - 1)) & stochastic
    noise = np.where(corner[:, None, None], np.array([1.0, -1.0, 1.0, -1.0]), 0.0)
    moves = np.stack([1 - slip, 1 - slip, slip, slip], axis=-1) / 2
    probability = np.broadcast_to(moves, (size * size, 2, 4))
    landed = np.stack([moved, moved, *(np.repeat(column[:, None], 2, axis=1),) * 2], axis=-1)
    next_state = below[..., None] * size + landed
    reward = paid[..., None] + noise
    terminated = np.broadcast_to(last[:, None, None], probability.shape)
    if not stochastic:
        probability = np.ones((size * size, 2, 1))
        next_state, reward, terminated = next_state[..., :1], reward[..., :1], terminated[..., :1]
    direction = _directions(size, mapping_seed)
    cells = np.arange(size * size)[:, None]
    return Environment(
        name="deep-sea",
        outcomes=make_outcomes(
            probability[cells, direction],
            next_state[cells, direction],
            reward[cells, direction],
            single_start(size * size, 0),
            terminated[cells, direction],
        ),
        action_names=("left", "right") if mapping_seed is None else ("0", "1"),
        parameters={"size": size, "stochastic": stochastic, "move_cost": move_cost, "mapping_seed": mapping_seed},
        view=GridView(_layout(size)),
    )


def _directions(size: int, mapping_seed: int | None) -> np.ndarray:
    """The direction of each action in each cell."""
    if mapping_seed is None:
        return np.tile([LEFT, RIGHT], (size * size, 1))
    first = np.random.default_rng(mapping_seed).integers(2, size=size * size)
    return np.stack([first, 1 - first], axis=1)


def _layout(size: int):
    rows = [FLOOR * size for _ in range(size)]
    rows[0] = "S" + rows[0][1:]
    rows[-1] = rows[-1][:-1] + GOAL
    return parse_layout(rows, start_character="S", special="")
