"""A log of Gymnasium's FrozenLake-v1 (4x4, slippery): `python examples/frozen_lake_log.py log.parquet`.

A walker crosses a frozen lake from the start in one corner to a goal in the other; the ice is slippery, so that two
steps in three go aside, and holes end the walk. Reaching the goal pays 1. Most of the time the walker does what is best
and else steps at random, so that some pairs are tried often and others hardly ever.
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
import pandas as pd

ACTIONS = ("left", "down", "right", "up")

# Action of the best policy in each cell, row by row; in holes and at the goal nobody acts.
BEST = (0, 3, 3, 3, 0, 0, 0, 0, 3, 1, 0, 0, 0, 2, 1, 0)
AT_RANDOM = 0.4


def cell(number):
    """Row and column, from one."""
    return f"row {number // 4 + 1}, column {number % 4 + 1}"


def walks(rows, seed):
    """Rows of whole episodes, at least so many."""
    environment = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    rng = np.random.default_rng(seed)
    done, episode = 0, 0
    while done < rows:
        state, _ = environment.reset(seed=int(rng.integers(2**31)))
        over = False
        while not over:
            action = int(rng.integers(4)) if rng.random() < AT_RANDOM else BEST[state]
            after, reward, terminated, truncated, _ = environment.step(action)
            yield cell(state), ACTIONS[action], float(reward), cell(after), terminated, truncated, episode
            state, over, done = after, terminated or truncated, done + 1
        episode += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="a .parquet file")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = ("state", "action", "reward", "next_state", "terminated", "truncated", "episode")
    frame = pd.DataFrame(list(walks(options.rows, options.seed)), columns=names)
    frame.to_parquet(options.path, index=False)
    print(f"{len(frame):,} steps in {options.path}")


if __name__ == "__main__":
    main()
