"""Simulation-based calibration of the value posterior, method by method, written as a table.

python benchmarks/calibration.py --simulations 2000 --out docs/results
"""

import argparse
from pathlib import Path

from bellief.decisions.certificates import LEVELS, calibrate

CASES = {
    "joint": {"method": "joint"},
    "joint, episodes that end": {"method": "joint", "terminates": True, "transitions": 20},
    "joint, discount 0.99": {"method": "joint", "discount": 0.99, "transitions": 200},
    "monte-carlo": {"method": "monte-carlo", "seed": 1},
    "gaussian (paper)": {"method": "gaussian"},
    "histogram (paper)": {"method": "histogram"},
    "mean-mdp": {"method": "mean-mdp"},
}


def main() -> None:
    """Run every case and write docs/results/calibration.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    error = (0.9 * 0.1 / options.simulations) ** 0.5
    lines = [
        "# Calibration of the value posterior",
        "",
        f"{options.simulations:,} MDPs of 4 states and 2 actions drawn from the paper's prior, a log from each, and "
        "the start value of a random policy: how often credible intervals hold the true value, the p-value of uniform "
        f"ranks, and the median width of the 90% intervals. The 90% column has a Monte Carlo error of {error:.3f}. "
        "Discount 0.9, 50 transitions and 199 draws unless said. Command: "
        f"`python benchmarks/calibration.py --simulations {options.simulations}`.",
        "",
        "| method | " + " | ".join(f"{level:.0%}" for level in LEVELS) + " | uniform ranks, p | width of 90% |",
        "|---|" + "---|" * (len(LEVELS) + 2),
    ]
    for name, case in CASES.items():
        found = calibrate(simulations=options.simulations, **case)
        uniform = "" if found.draws == 1 else f"{found.uniformity():.2g}"
        cells = " | ".join(f"{found.coverage[level]:.3f}" for level in LEVELS)
        lines.append(f"| {name} | {cells} | {uniform} | {found.width[0.9]:.3g} |")
        print(lines[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "calibration.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
