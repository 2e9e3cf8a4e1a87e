"""Methods 1, 2 and 3 on NChain: distance to Monte Carlo, effective sample sizes and time, against the amount of data.

For each policy, amount of data and data set: the truth by Monte Carlo with many MDPs, then every method on that data.

    python benchmarks/methods.py --data-sets 4 --out docs/results/methods.csv
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from wasserstein import DISCOUNT, POLICIES, distance, simulate

import bellief
from bellief.induction.stationary import Settings

SIZES = (10, 100, 1000)
DRAWS = 200
CASES = {
    "mean MDP": {"method": "mean-mdp"},
    "Monte Carlo, 200 MDPs": {"method": "monte-carlo"},
    "Method 1 (gaussian, 10 MDPs)": {"method": "gaussian"},
    "Method 2, own prior over V": {"method": "method2", "settings": Settings("own")},
    "Method 2, Gaussian prior over V": {"method": "method2", "settings": Settings("gaussian")},
    "Method 3, own prior over V": {"method": "method3", "settings": Settings("own")},
    "Method 3, Gaussian prior over V": {"method": "method3", "settings": Settings("gaussian")},
}


def main() -> None:
    """One row per policy, size, data set and method, written as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--policies", nargs="*", default=[*POLICIES])
    parser.add_argument("--out", type=Path, default=Path("docs/results/methods.csv"))
    options = parser.parse_args()
    rows = []
    for number in range(options.first, options.first + options.data_sets):
        for reading in options.policies:
            policy = np.tile(POLICIES[reading], (5, 1))
            for steps in SIZES:
                data = simulate(np.random.default_rng([number, steps]), POLICIES[reading], steps)
                truth = bellief.evaluate(
                    data, policy, DISCOUNT, prior="paper", method="monte-carlo", mdps=20_000, seed=10**6 + number
                ).samples
                for name, case in CASES.items():
                    # Called twice with different keys: the second time nothing has to be compiled.
                    for seed in (number, number + 1000):
                        began = time.perf_counter()
                        found = bellief.evaluate(data, policy, DISCOUNT, prior="paper", draws=DRAWS, seed=seed, **case)
                        seconds = time.perf_counter() - began
                    sizes = found.diagnostics.get("effective_sample_sizes", {})
                    rows.append(
                        {
                            "policy": reading,
                            "steps": steps,
                            "data set": number,
                            "method": name,
                            "distance": distance(truth, found.samples),
                            "sd_ratio": float((found.samples.std(0) / truth.std(0)).mean()),
                            "least_size": min(sizes.values()) if sizes else np.nan,
                            "seconds": seconds,
                        }
                    )
                    print(rows[-1], flush=True)
                    pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
