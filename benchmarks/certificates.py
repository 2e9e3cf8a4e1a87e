"""Calibration certificates for problems of several sizes, as `bellief certify` computes them.

python benchmarks/certificates.py --simulations 1000 --out docs/results/certify.csv
"""

import argparse
import time
from pathlib import Path

import pandas as pd
from coverage_page import fill

from bellief.decisions.certificates import certify
from bellief.decisions.feature_calibration import certify_features

SIZES = (
    {"states": 2, "transitions": 10},
    {"states": 5, "transitions": 50},
    {"states": 5, "transitions": 500, "discount": 0.99},
    {"states": 10, "transitions": 200, "actions": 4},
    {"states": 20, "transitions": 400, "terminates": True, "discount": 1.0},
    {"states": 50, "transitions": 1000, "actions": 3},
    {"states": 100, "transitions": 5000, "discount": 0.95},
    {"features": 2, "transitions": 200},
    {"features": 4, "transitions": 500, "actions": 3},
)


def main() -> None:
    """One row per size, prior pass and level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[*range(len(SIZES))], help="numbers in the list")
    parser.add_argument("--out", type=Path, default=Path("docs/results/certify.csv"))
    parser.add_argument("--fill", action="store_true", help="only fill the page beside the table")
    options = parser.parse_args()
    if options.fill:
        fill(options.out.with_suffix(".md"), {"certify": table(pd.read_csv(options.out))})
        return
    rows = []
    for number in options.sizes:
        began = time.perf_counter()
        size = SIZES[number]
        run = certify_features if "features" in size else certify
        found = run(**size, simulations=options.simulations, seed=number).to_dict()
        seconds = time.perf_counter() - began
        shown = ("states", "features", "actions", "transitions", "discount", "horizon", "ends", "simulations")
        problem = {name: found.get(name) for name in (*shown, "uniform_ranks_p", "calibrated")} | {"seconds": seconds}
        for known, levels in ((True, found["levels"]), (False, found["levels_with_estimated_scale"])):
            rows += [problem | {"scale_known": known} | level for level in levels]
        print(rows[-1], flush=True)
        pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.5g")


def table(frame: pd.DataFrame) -> list[str]:
    """One line per size: coverage at every level with the scale known, and at 90% with the scale from the log."""
    levels = sorted(frame.level.unique())
    lines = [
        "| problem | " + " | ".join(f"{level:.0%}" for level in levels) + " | uniform ranks, p | scale from the log: "
    ]
    lines[0] += " | ".join(f"{level:.0%}" for level in levels) + " |"
    lines.append("|---|" + "---|" * (2 * len(levels) + 1))
    sizes = ["states", "features", "actions", "transitions", "discount"]
    for _, part in frame.groupby(sizes, sort=False, dropna=False):
        first = part.iloc[0]
        size = f"{first.states:g} states" if first.states > 0 else f"{first.features:g} features"
        name = f"{size}, {first.actions} actions, {first.transitions} transitions, discount {first.discount:g}"
        name += ", episodes end" if str(first.ends) == "True" else ""
        name += f", horizon {first.horizon:g}" if first.horizon > 0 else ""
        name += f" ({first.simulations} simulations)"
        known, estimated = (part[part.scale_known == known].sort_values("level") for known in (True, False))
        cells = [f"{row.coverage:.3f} ({row.error:.3f})" for row in known.itertuples()] + [
            f"{first.uniform_ranks_p:.2g}"
        ]
        cells += [f"{row.coverage:.3f}" for row in estimated.itertuples()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    main()
