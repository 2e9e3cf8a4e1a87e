"""Simulation-based calibration of the default prior in problems drawn from its own model, at six sizes,
and once more for ends with a discount.

    python benchmarks/logged_calibration.py --simulations 1000 --jobs 2 --out docs/results/logged-calibration.csv

Under discount 1 logs that `evaluate` refuses are counted and replaced, so that 1,000 simulations are 1,000 logs that it
answers. Minutes on one core; `--sizes 0 3` runs some of them. benchmarks/log_coverage_page.py puts the table into the
page.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pandas as pd
from certificates import SIZES

from bellief.decisions.certificates import certify

DRAWS = 99
# Ends again with a discount, on the same problems.
CASES = (*((size, seed) for seed, size in enumerate(SIZES[:6])), (SIZES[4] | {"discount": 0.95}, 4))


def calibration(number: int, simulations: int) -> dict[str, Any]:
    """One row of the table."""
    began = time.process_time()
    size, seed = CASES[number]
    found = certify(**size, simulations=simulations, draws=DRAWS, seed=seed).to_dict()
    row = {"size": number} | {name: found[name] for name in ("states", "actions", "transitions", "discount", "ends")}
    row |= {"simulations": simulations, "uniform_ranks_p": found["uniform_ranks_p"]}
    row |= {"known_refused": found["refused"], "estimated_refused": found["refused_with_estimated_scale"]}
    for name, levels in (("known", "levels"), ("estimated", "levels_with_estimated_scale")):
        for one in found[levels]:
            row |= {f"{name}_{one['level']:g}": one["coverage"], f"{name}_width_{one['level']:g}": one["width"]}
    return row | {"processor_seconds": time.process_time() - began}


def main() -> None:
    """One row for each size, written as soon as it is there; sizes that the file has are not run again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[*range(len(CASES))], help="numbers in the list")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/results/logged-calibration.csv"))
    options = parser.parse_args()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    rows = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    done = {row["size"] for row in rows}
    # Large problems first: they take longest.
    left = sorted((number for number in options.sizes if number not in done), reverse=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for job in as_completed([pool.submit(calibration, number, options.simulations) for number in left]):
            rows.append(job.result())
            print(rows[-1], flush=True)
            pd.DataFrame(rows).sort_values("size").to_csv(options.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
