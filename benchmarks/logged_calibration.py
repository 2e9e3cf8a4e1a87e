"""Simulation-based calibration of the default prior: in problems drawn from its own model, and from another one.

    python benchmarks/logged_calibration.py --simulations 1000 --jobs 2 --out docs/results/logged-calibration.csv

Three tables, each written as it grows, and none of its rows computed twice:

- `logged-calibration.csv`: six sizes of the prior's own model, and one of them again with a discount. Under discount
  1 logs that `evaluate` refuses are counted and replaced, so that 1,000 simulations are 1,000 logs that it answers.
- `logged-calibration-other.csv`: worlds of the prior `logged-0.1`, evaluated with both priors.
- `logged-calibration-ends.csv`: one row for each log of the size with ends and discount 1: how long episodes of the
  policy really last, both intervals, and which of the two beliefs answers.

Minutes on one core; `--parts own --sizes 0 3` runs some of it. benchmarks/log_coverage_page.py puts the tables into the
page.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from certificates import SIZES

from bellief.decisions import logged_worlds
from bellief.decisions.certificates import (
    OTHER_SEED,
    UNIT_EVEN,
    calibrate,
    certify,
    interval,
    refuse_endless,
    start_values,
)
from bellief.decisions.worlds import simulate, true_values
from bellief.evaluation.knowledge import EndlessError
from bellief.evaluation.problem import prepare

DRAWS, LEVEL = 99, 0.9
# Ends again with a discount, on the same problems.
CASES = (*((size, seed) for seed, size in enumerate(SIZES[:6])), (SIZES[4] | {"discount": 0.95}, 4))

# Sizes of worlds of the other model.
OTHER = (
    {"states": 2, "transitions": 10},
    {"states": 5, "transitions": 100},
    {"states": 10, "transitions": 500},
    {"states": 20, "transitions": 500, "terminates": True},
)

# Logs with ends are of other problems than those of the first table.
ENDS, ENDS_SEED = 4, 1_000
PARTS = ("own", "other", "ends")


def calibration(number: int, simulations: int) -> dict[str, Any]:
    """One row of the table of the prior's own model."""
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


def other(number: int, simulations: int) -> dict[str, Any]:
    """One row of the table of worlds of the prior `logged-0.1`."""
    size = {"states": 0, "actions": 2, "transitions": 0, "discount": 0.9, "terminates": False} | OTHER[number]
    row = {"size": number, "simulations": simulations} | size
    for belief in ("logged", "logged-0.1"):
        found = calibrate(
            **size, simulations=simulations, draws=DRAWS, prior=UNIT_EVEN, seed=number, belief_prior=belief
        )
        row |= {f"{belief}_{LEVEL:g}": found.coverage[LEVEL], f"{belief}_width_{LEVEL:g}": found.width[LEVEL]}
    return row


def ends(number: int, simulations: int) -> list[dict[str, Any]]:
    """One row for each of so many logs with ends and discount 1, evaluated from the log and with everything known."""
    rng, found = np.random.default_rng(ENDS_SEED + number), []
    states, actions = SIZES[ENDS]["states"], 2
    for log in range(simulations):
        world, known = logged_worlds.draw(rng, logged_worlds.UNIT, states, actions, True)
        policy = rng.dirichlet(np.ones(actions), size=states)
        data = simulate(rng, world, np.full((states, actions), 1 / actions), SIZES[ENDS]["transitions"])
        table = np.concatenate([policy, np.full((data.states - states, actions), 1 / actions)])
        own = (ENDS_SEED + number) * simulations + log
        truth = true_values(world, policy, 1.0)[0]
        row = {"part": number, "log": log, "truth": truth}
        row["length"] = true_values(world._replace(reward=np.ones_like(world.reward)), policy, 1.0)[0]
        for name, problem in (
            ("estimated", prepare(data, 1.0, prior="logged", start=0, terminates=True)),
            ("known", logged_worlds.known_problem(data, 1.0, logged_worlds.UNIT, known, True)),
        ):
            low, high = interval(start_values(problem, table, own, DRAWS), LEVEL)
            row |= {f"{name}_low": low, f"{name}_high": high, f"{name}_covered": int(low <= truth <= high)}
            try:
                refuse_endless(problem, table, own + OTHER_SEED, DRAWS)
                row[f"{name}_answers"] = 1
            except EndlessError:
                row[f"{name}_answers"] = 0
        found.append(row)
    return found


def main() -> None:
    """Rows are written as soon as they are there; those that a file has are not computed again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=[*PARTS])
    parser.add_argument("--sizes", type=int, nargs="*", default=[*range(len(CASES))], help="numbers in the list")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/results/logged-calibration.csv"))
    options = parser.parse_args()
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with ProcessPoolExecutor(options.jobs) as pool:
        # Large problems first: they take longest.
        for part, compute, numbers, order in (
            ("own", calibration, sorted(options.sizes, reverse=True), ["size"]),
            ("other", other, [*range(len(OTHER))][::-1], ["size"]),
            # Two thousand logs are drawn for a thousand that are answered.
            ("ends", ends, [0, 1], ["part", "log"]),
        ):
            if part not in options.parts:
                continue
            out = options.out if part == "own" else options.out.with_stem(f"{options.out.stem}-{part}")
            rows = pd.read_csv(out).to_dict("records") if out.exists() else []
            done = {row[order[0]] for row in rows}
            jobs = [pool.submit(compute, number, options.simulations) for number in numbers if number not in done]
            for job in as_completed(jobs):
                new = job.result()
                rows += new if isinstance(new, list) else [new]
                print(part, new if isinstance(new, dict) else len(new), flush=True)
                pd.DataFrame(rows).sort_values(order).to_csv(out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
