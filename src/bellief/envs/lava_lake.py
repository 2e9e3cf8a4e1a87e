"""LavaLake: a grid where the short way leads along the lava and slips make it dangerous."""

from collections.abc import Sequence

import numpy as np

from bellief.envs.base import Environment, single_start
from bellief.envs.checks import check_number, check_probability
from bellief.envs.grid import ACTION_NAMES, GOAL, LAVA, GridView, moves_with_slip, parse_layout
from bellief.mdp.tabular_mdp import make_outcomes

LAYOUT_5X7 = """\
A.LLL.G
.......
.......
.......
..LLL..
"""

LAYOUT_10X10 = """\
..........
..........
....LL....
....LL....
A........G
....LL....
...LLLL...
...LLLL...
....LL....
..........
"""


def lava_lake(
    layout: str | Sequence[str] = LAYOUT_5X7,
    slip: float = 0.2,
    step_reward: float = -1.0,
    goal_reward: float = 50.0,
    lava_reward: float = -50.0,
) -> Environment:
    """Walk from A to G past lava (L), again and again; the default map has 5 rows and 7 columns.

    A move goes as chosen with probability `1 - slip` and to either side with `slip / 2`; a wall (#) or the edge of the
    map leaves the agent in place. Entering the goal pays `goal_reward` and entering lava `lava_reward`, each in place
    of the `step_reward` of every other step, and the same step carries the agent back to A. So nothing ever
    terminates.

    States are the cells, walls left out, in reading order. The agent never stands on a goal or lava cell, since it is
    back at A by then; so that no state is without dynamics, those cells behave as A does.

    Being carried back to A, where an episode might have ended instead, is our own choice: it makes one endless run.

    >>> from bellief.envs.lava_lake import lava_lake
    >>> print(lava_lake(layout=["ALG", "..."]).render_text(0).replace(" ", ""))
    [A]LG
    ...
    """
    return _build("lavalake", layout, slip, step_reward, goal_reward, lava_reward)


def lava_lake_10(
    layout: str | Sequence[str] = LAYOUT_10X10,
    slip: float = 0.2,
    step_reward: float = -1.0,
    goal_reward: float = 50.0,
    lava_reward: float = -50.0,
) -> Environment:
    """The rules of `lava_lake` on a map of 10 rows and 10 columns.

    Deviation: no map of this size has been published, so this one is our own. A strait between two lakes leads
    from A to G in 9 steps, two of them with lava on both sides; the way along the northern edge takes 17 and is safe.

    >>> from bellief.envs.lava_lake import lava_lake_10
    >>> lava_lake_10().layout is not None, lava_lake_10().states
    (True, 100)
    """
    return _build("lavalake10", layout, slip, step_reward, goal_reward, lava_reward)


def _build(name, layout, slip, step_reward, goal_reward, lava_reward) -> Environment:
    slip = check_probability("slip", slip)
    step_reward = check_number("step_reward", step_reward)
    goal_reward = check_number("goal_reward", goal_reward)
    lava_reward = check_number("lava_reward", lava_reward)
    grid = parse_layout(layout, start_character="A", special=LAVA)

    probability, entered = moves_with_slip(grid, slip)
    goal, lava = grid.characters == GOAL, grid.characters == LAVA
    next_state = np.where((goal | lava)[entered], grid.start, entered)
    reward = np.select([goal[entered], lava[entered]], [goal_reward, lava_reward], step_reward)
    next_state[goal | lava] = next_state[grid.start]
    reward[goal | lava] = reward[grid.start]
    return Environment(
        name=name,
        outcomes=make_outcomes(
            np.broadcast_to(probability, entered.shape), next_state, reward, single_start(len(grid.cells), grid.start)
        ),
        action_names=ACTION_NAMES,
        parameters={
            "layout": grid.rows,
            "slip": slip,
            "step_reward": step_reward,
            "goal_reward": goal_reward,
            "lava_reward": lava_reward,
        },
        view=GridView(grid),
    )
