"""RiverSwim: a small reward downstream, a large one upstream against the current (Strehl and Littman 2008)."""

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_count, check_number
from bellief.envs.nchain import ChainView
from bellief.mdp.tabular_mdp import make_outcomes

LEFT, RIGHT = 0, 1


def river_swim(size: int = 6, small_reward: float = 0.005, large_reward: float = 10.0) -> Environment:
    """A row of `size` states that never ends; the start is state 0, the left bank.

    Action 0, *left*, drifts one state down, and pays `small_reward` in state 0. Action 1, *right*, swims upstream: from
    state 0 it succeeds with probability 0.6; in between it advances with 0.35, stays with 0.6 and is carried back with
    0.05; in the last state it stays with 0.6 and pays `large_reward` however it ends. These are the probabilities of
    Osband et al. (2013); the scale of the rewards is ours (0.005 and 1 there, 5 and 10,000 in the original).

    >>> from bellief.envs.river_swim import river_swim
    >>> river_swim().mdp().transition[1, 1].round(2).tolist()
    [0.05, 0.6, 0.35, 0.0, 0.0, 0.0]
    """
    size = check_count("size", size, least=3)
    small_reward, large_reward = check_number("small_reward", small_reward), check_number("large_reward", large_reward)

    last, place = size - 1, np.arange(size)
    # Outcomes: carried back, stays, advances.
    next_state = np.stack([np.maximum(place - 1, 0), place, np.minimum(place + 1, last)], axis=1)
    probability = np.zeros((size, 2, 3))
    probability[:, LEFT] = [1.0, 0.0, 0.0]
    probability[:, RIGHT] = [0.05, 0.6, 0.35]
    probability[0, RIGHT] = [0.0, 0.4, 0.6]
    probability[last, RIGHT] = [0.4, 0.6, 0.0]
    reward = np.zeros((size, 2, 3))
    reward[0, LEFT] = small_reward
    reward[last, RIGHT] = large_reward
    return Environment(
        name="riverswim",
        outcomes=make_outcomes(probability, np.repeat(next_state[:, None], 2, axis=1), reward, single_start(size, 0)),
        action_names=("left", "right"),
        parameters={"size": size, "small_reward": small_reward, "large_reward": large_reward},
        view=ChainView(size),
    )
