"""Do the intervals of `joint` hold the truth as often as those of its draws alone? In problems drawn from the prior.

In each simulation an MDP is drawn from the prior `logged` with known hyperparameters, a log from it, and the start
value of a random policy is evaluated twice from the same draws: summarised by the law of `joint`, and by counting.

    python benchmarks/law_coverage.py --simulations 1000 --out docs/results/law-coverage.csv
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from certificates import SIZES

from bellief.decisions import logged_worlds
from bellief.decisions.worlds import simulate, true_values
from bellief.evaluation.accuracy import StartDraws
from bellief.evaluation.posterior import interval

LEVELS, DRAWS = (0.5, 0.8, 0.9, 0.95), 200


def coverage(number: int, simulations: int) -> dict[str, float]:
    """Shares of the simulations of a size in which intervals hold the truth, and how often the law was used."""
    size = SIZES[number]
    ends = bool(size.get("terminates"))
    states, actions = size["states"], size.get("actions", 2)
    discount = size.get("discount", 0.9) if not ends else 0.95
    rng, held, used = np.random.default_rng(number), {}, 0
    for seed in range(simulations):
        world, known = logged_worlds.draw(rng, logged_worlds.UNIT, states, actions, ends)
        policy = rng.dirichlet(np.ones(actions), size=states)
        data = simulate(rng, world, np.full((states, actions), 1 / actions), size["transitions"])
        table = np.concatenate([policy, np.full((data.states - states, actions), 1 / actions)])
        problem = logged_worlds.known_problem(data, discount, logged_worlds.UNIT, known, ends)
        truth = true_values(world, policy, discount)[0]
        drawn = StartDraws(problem, table[None], seed, None, helped=True)
        drawn.extend(DRAWS)
        start, linear = drawn.start()
        law = drawn.laws(start, linear, np.ones((1, 1)))[0]
        used += law is not None
        for name, points in (("joint", start[:, 0] if law is None else law.points), ("draws", start[:, 0])):
            for level in LEVELS:
                low, high = interval(points, level)
                held.setdefault((name, level), []).append(low <= truth <= high)
    row = {"size": number, "states": states, "actions": actions, "transitions": size["transitions"]}
    row |= {"discount": discount, "ends": ends, "simulations": simulations, "law_used": used / simulations}
    return row | {f"{name}_{level:g}": float(np.mean(found)) for (name, level), found in held.items()}


def main() -> None:
    """One row a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(range(5)))
    parser.add_argument("--out", type=Path, default=Path("docs/results/law-coverage.csv"))
    options = parser.parse_args()
    rows = []
    for number in options.sizes:
        rows.append(coverage(number, options.simulations))
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
