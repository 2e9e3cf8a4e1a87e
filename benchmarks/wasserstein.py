"""How close value posteriors come to the truth on NChain: the paper's Wasserstein table, with more data sets.

For each reading of the paper's fixed policy and each amount of data: many data sets, the truth by Monte Carlo with many
MDPs, and the mean over states of the Wasserstein distance to it. Writes CSV and Markdown.

    python benchmarks/wasserstein.py --data-sets 20 --truth 20000 --out docs/results
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

import bellief
from bellief.paper.computations import DISCOUNT, SIZES, data_set, distance
from bellief.paper.computations import READINGS as POLICIES
from bellief.paper.computed_claims import PRINTED as PAPER

PAPER_METHOD, AT_ITS_TIME = "gaussian, 10 MDPs (paper)", "joint, 4,000 draws"


def measure(data: bellief.Transitions, policy: np.ndarray, truth_size: int, seed: int):
    """Distances of all methods on one data set, and seconds of two. Methods with the same seed and number share their
    MDPs.
    """
    seconds = {}

    def values(seed=seed, **options):
        return bellief.evaluate(data, policy, DISCOUNT, prior="paper", seed=seed, **options).samples

    truth = values(seed=10**6 + seed, method="monte-carlo", mdps=truth_size)
    # The paper averages five runs of its algorithm, each on its own MDPs.
    gaussian = []
    for run in range(5):
        began = time.perf_counter()
        found = values(seed=10**7 + 5 * seed + run, method="gaussian")
        # The first call compiles.
        seconds[PAPER_METHOD] = min(seconds.get(PAPER_METHOD, np.inf), time.perf_counter() - began)
        gaussian.append(distance(truth, found))
    began = time.perf_counter()
    drawn = values(draws=4000)
    seconds[AT_ITS_TIME] = time.perf_counter() - began
    distances = {
        "mean MDP": distance(truth, values(method="mean-mdp")),
        PAPER_METHOD: float(np.mean(gaussian)),
        AT_ITS_TIME: distance(truth, drawn),
        "Monte Carlo, 10 MDPs": distance(truth, values(method="monte-carlo", mdps=10)),
        "Monte Carlo, 100 MDPs": distance(truth, values(method="monte-carlo", mdps=100)),
        "joint, 100 MDPs, psi_H zero": distance(truth, values(method="joint", mdps=100, final="zero", draws=100)),
        "joint, 100 MDPs, psi_H pooled, H 688": distance(
            truth, values(method="joint", mdps=100, final="pooled", draws=10_000)
        ),
        "joint, 100 MDPs, psi_H pooled, H 100": distance(
            truth, values(method="joint", mdps=100, final="pooled", lookahead=100, draws=10_000)
        ),
        "joint, 100 MDPs, psi_H zero, H 100": distance(
            truth, values(method="joint", mdps=100, final="zero", lookahead=100)
        ),
    }
    return distances, seconds


def main() -> None:
    """Measure, summarise, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--truth", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    rows = []
    for reading, probabilities in POLICIES.items():
        policy = np.tile(probabilities, (5, 1))
        for steps in SIZES:
            for number in range(options.data_sets):
                data = data_set(reading, steps, number, options.seed)
                found, seconds = measure(data, policy, options.truth, options.seed * 1000 + number)
                rows += [
                    {"policy": reading, "steps": steps, "data set": number, "method": method, "distance": value,
                     "seconds": seconds.get(method)}
                    for method, value in found.items()
                ]  # fmt: skip
            print(f"{reading}, {steps} steps done", flush=True)
    frame = pd.DataFrame(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    frame.to_csv(options.out / "wasserstein.csv", index=False, float_format="%.4f")
    (options.out / "wasserstein.md").write_text(markdown(frame, options))
    print(f"wrote {options.out / 'wasserstein.md'}")


def markdown(frame: pd.DataFrame, options: argparse.Namespace) -> str:
    """Mean distance, its standard error over data sets, and the ratio of means to the mean MDP's."""
    command = f"python benchmarks/wasserstein.py --data-sets {options.data_sets} --truth {options.truth}"
    lines = [
        "# Wasserstein distance to the true value posterior, NChain",
        "",
        f"Mean over {options.data_sets} data sets (standard error), averaged over states; in brackets the ratio to the "
        f"mean MDP's. Truth: Monte Carlo with {options.truth:,} MDPs. Command: `{command}`.",
        "",
        _at_its_time(frame),
    ]
    for reading in POLICIES:
        part = frame[frame["policy"] == reading].pivot(index=["steps", "data set"], columns="method", values="distance")
        lines += ["", f"## {reading} policy {POLICIES[reading]}", "", "| method | 10 steps | 100 steps | 1000 steps |"]
        lines += ["|---|---|---|---|"]
        for method in frame["method"].unique():
            cells = []
            for steps in SIZES:
                values, base = part.loc[steps][method], part.loc[steps]["mean MDP"]
                error = values.std(ddof=1) / np.sqrt(len(values))
                cells.append(f"{values.mean():.2f} ({error:.2f}) [{values.mean() / base.mean():.2f}]")
            lines.append(f"| {method} | {' | '.join(cells)} |")
        printed = [f"{induction} [{induction / mean:.2f}]" for induction, mean in PAPER.values()]
        lines.append(f"| the paper's induction | {' | '.join(printed)} |")
        lines.append(f"| the paper's mean MDP | {' | '.join(f'{mean}' for _, mean in PAPER.values())} |")
        lines += ["", "Paired differences to Monte Carlo on the same 100 MDPs (negative: closer to the truth):", ""]
        lines += ["| method | 10 steps | 100 steps | 1000 steps |", "|---|---|---|---|"]
        for method in [name for name in frame["method"].unique() if name.startswith("joint, 100")]:
            cells = []
            for steps in SIZES:
                gap = part.loc[steps][method] - part.loc[steps]["Monte Carlo, 100 MDPs"]
                cells.append(f"{gap.mean():+.3f} ({gap.std(ddof=1) / np.sqrt(len(gap)):.3f})")
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _at_its_time(frame: pd.DataFrame) -> str:
    """What as many draws as take the time of the paper's method gain."""
    seconds = frame.groupby("method")["seconds"].median()
    ours, papers = 1000 * seconds[AT_ITS_TIME], 1000 * seconds[PAPER_METHOD]
    means = frame.groupby(["policy", "steps", "method"])["distance"].mean().unstack()
    ratio = means[AT_ITS_TIME] / means["Monte Carlo, 100 MDPs"]
    return (
        f"{AT_ITS_TIME} take {ours / papers:.2f} times as long as {PAPER_METHOD} (medians of the public call, "
        f"{ours:.0f} and {papers:.0f} ms, compiled), and have {ratio.min():.2f} to {ratio.max():.2f} of the distance "
        "of Monte Carlo with 100 MDPs."
    )


if __name__ == "__main__":
    main()
