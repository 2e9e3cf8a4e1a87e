"""Simulation-based calibration of the default prior in problems drawn from its own model, at six sizes,
and once more for ends with a discount.

    python benchmarks/logged_calibration.py --simulations 1000 --out docs/results/logged-calibration.csv

Minutes on one core; `--sizes 0 3` runs some of them. benchmarks/log_coverage_page.py puts the table into the page.
"""

import argparse
import time
from pathlib import Path

import pandas as pd
from certificates import SIZES

from bellief.decisions.certificates import certify

DRAWS = 99
# Ends again with a discount, on the same problems.
CASES = (*((size, seed) for seed, size in enumerate(SIZES[:6])), (SIZES[4] | {"discount": 0.95}, 4))


def main() -> None:
    """One row for each size, written as soon as it is there; sizes that the file has are not run again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[*range(len(CASES))], help="numbers in the list")
    parser.add_argument("--out", type=Path, default=Path("docs/results/logged-calibration.csv"))
    options = parser.parse_args()
    rows = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    done = {row["size"] for row in rows}
    for number in [number for number in options.sizes if number not in done]:
        began = time.process_time()
        size, seed = CASES[number]
        found = certify(**size, simulations=options.simulations, draws=DRAWS, seed=seed).to_dict()
        row = {"size": number} | {
            name: found[name] for name in ("states", "actions", "transitions", "discount", "ends")
        }
        row |= {"simulations": options.simulations, "uniform_ranks_p": found["uniform_ranks_p"]}
        for name, levels in (("known", "levels"), ("estimated", "levels_with_estimated_scale")):
            for one in found[levels]:
                row |= {f"{name}_{one['level']:g}": one["coverage"], f"{name}_width_{one['level']:g}": one["width"]}
        rows.append(row | {"processor_seconds": time.process_time() - began})
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
