"""Methods 1, 2 and 3 on NChain: distance to Monte Carlo, effective sample sizes and time, against the amount of data.

For each policy, amount of data and data set: the truth by Monte Carlo with many MDPs, then every method on that data.

    python benchmarks/methods.py --data-sets 4 --out docs/results/methods.csv

Start values of the first data set are kept beside the table for the picture of docs/methods.md, which
`--draw docs/images/methods.png` draws.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from coverage_page import fill

import bellief
from bellief.induction.stationary import Settings
from bellief.paper.computations import DISCOUNT, distance, simulate
from bellief.paper.computations import READINGS as POLICIES
from bellief.plots import style
from bellief.plots.value_pictures import Comparison, comparison_figure

SIZES = (10, 100, 1000)
DRAWS = 200
CASES = {
    "mean MDP": {"method": "mean-mdp"},
    "Monte Carlo, 200 MDPs": {"method": "monte-carlo"},
    "Method 1 (gaussian, 10 MDPs)": {"method": "gaussian"},
    "Method 2, own prior over V": {"method": "method2", "settings": Settings("own", steps=100, prior_mdps=2000)},
    "Method 2, Gaussian prior over V": {
        "method": "method2",
        "settings": Settings("gaussian", steps=100, prior_mdps=2000),
    },
    "Method 3, own prior over V": {"method": "method3", "settings": Settings("own", steps=100, prior_mdps=2000)},
    "Method 3, Gaussian prior over V": {
        "method": "method3",
        "settings": Settings("gaussian", steps=100, prior_mdps=2000),
    },
}


def main() -> None:
    """Measure every policy, size and data set, and write after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=4)
    parser.add_argument("--policies", nargs="*", default=[*POLICIES])
    parser.add_argument("--out", type=Path, default=Path("docs/results/methods.csv"))
    parser.add_argument("--draw", type=Path, help="only draw the picture and fill the page, from what was kept")
    options = parser.parse_args()
    kept = options.out.with_suffix(".npz")
    if options.draw is not None:
        draw(dict(np.load(kept)), options.draw)
        found = pd.read_csv(options.out)
        fill(options.out.with_suffix(".md"), {"methods": table(found)})
        fill(options.out.parents[1] / "methods.md", {"summary": summary(found)})
        return
    rows, samples = [], {}
    for number in range(options.data_sets):
        for reading in options.policies:
            for steps in SIZES:
                for row, values in measure(reading, steps, number):
                    print(row, flush=True)
                    rows.append(row)
                    if number == 0:
                        samples[f"{reading}/{steps}/{row['method']}"] = values
                pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.4g")
                np.savez_compressed(kept, **samples)


def measure(reading: str, steps: int, number: int) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """One row per method, with the draws of the start value; times are processor seconds, compilation left out."""
    policy = np.tile(POLICIES[reading], (5, 1))
    data = simulate(np.random.default_rng([number, steps]), POLICIES[reading], steps)
    common = {"discount": DISCOUNT, "prior": "paper"}
    truth = bellief.evaluate(data, policy, **common, method="monte-carlo", draws=5000, seed=10**6 + number).samples
    yield {"policy": reading, "steps": steps, "data set": number, "method": "truth"}, truth[:, 0]
    for name, case in CASES.items():
        # The first call compiles, which is not what is to be measured.
        bellief.evaluate(data, policy, **common, draws=DRAWS, seed=number, **case)
        began = time.process_time()
        found = bellief.evaluate(data, policy, **common, draws=DRAWS, seed=number, **case)
        seconds = time.process_time() - began
        sizes = found.diagnostics.get("effective_sample_sizes", {})
        yield (
            {
                "policy": reading,
                "steps": steps,
                "data set": number,
                "method": name,
                "distance": distance(truth, found.samples),
                "sd_ratio": float((found.samples.std(0) / truth.std(0)).mean()),
                "least_size": min(sizes.values()) if sizes else np.nan,
                "seconds": seconds,
            },
            found.samples[:, 0],
        )


def table(frame: pd.DataFrame) -> list[str]:
    """Means over data sets."""
    lines = [
        "| policy | transitions | method | distance | spread / truth | smallest size | seconds |",
        "|---|" + "---|" * 6,
    ]
    frame = frame[frame.method != "truth"]
    for (policy, steps, method), part in frame.groupby(["policy", "steps", "method"], sort=False):
        mean = part[["distance", "sd_ratio", "least_size", "seconds"]].mean()
        size = "" if np.isnan(mean.least_size) else f"{mean.least_size:.1f}"
        numbers = f"{mean.distance:.3g} | {mean.sd_ratio:.2f} | {size} | {mean.seconds:.2g}"
        lines.append(f"| {policy} | {steps:,} | {method} | {numbers} |")
    return lines


def summary(frame: pd.DataFrame) -> list[str]:
    """One line per method: distance at every size, one number for each policy, and processor seconds."""
    frame = frame[frame.method != "truth"]
    policies = list(frame.policy.unique())
    head = " | ".join(f"{size:,} transitions" for size in SIZES)
    lines = [f"| distance to Monte Carlo, {' / '.join(policies)} | {head} | seconds |", "|---|" + "---|" * 4]
    for method, part in frame.groupby("method", sort=False):
        means = part.groupby(["steps", "policy"]).distance.mean()
        cells = [" / ".join(f"{means[size, policy]:.3g}" for policy in policies) for size in SIZES]
        lines.append(f"| {method} | {' | '.join(cells)} | {part.seconds.median():.2g} |")
    return lines


def draw(samples: dict[str, np.ndarray], path: Path) -> None:
    """The value of the first state by every method over the truth, for the forward-heavy policy."""
    names = {"Method 1 (gaussian, 10 MDPs)": "gaussian", "Method 2, own prior over V": "method2"}
    names |= {"Method 3, own prior over V": "method3", "Method 3, Gaussian prior over V": "method3-gaussian"}
    panels = []
    for steps in SIZES:
        part = {name.rsplit("/", 1)[1]: v for name, v in samples.items() if name.startswith(f"forward-heavy/{steps}/")}
        if not part:
            continue
        methods = {short: [part[name]] for name, short in names.items()}
        line = float(part["mean MDP"][0])
        panels.append(Comparison(f"{steps:,} transitions", part["truth"], methods, line=line))
    labels = {
        "monte-carlo": "Monte Carlo (truth)",
        "gaussian": "Method 1, Gaussian",
        "method2": "Method 2",
        "method3": "Method 3",
        "method3-gaussian": "Method 3, Gaussian prior over V",
    }
    path.write_bytes(style.to_bytes(comparison_figure(panels, labels, legend_columns=3), "png"))


if __name__ == "__main__":
    main()
