"""Every agent on the processor and on the GPU, with the same keys: do they agree?

What is asked of each: at least nine runs in ten earn exactly the same, or to three digits where rewards are real
numbers (decisions are the same until two actions are equally good up to rounding), and what plans report of values
differs by at most one part in a hundred of their size (H steps amplify rounding, and value beliefs with few samples
more than others).

    python benchmarks/agreement.py                          # needs a GPU
    python benchmarks/agreement.py --agents psrl mmbi --out agreement.json

Ends with exit code 1 where an agent does not agree.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import bellief

AGENTS = {
    "bbi": ("nchain", "bbi-paper", {}),
    "bbi, optimistic": ("nchain", "bbi-paper", {"rule": "optimistic"}),
    "bbi, thompson": ("nchain", "bbi-paper", {"rule": "thompson"}),
    "bbi, lavalake": ("lavalake", "bbi-paper", {}),
    "bbi, maze": ("maze", "bbi-paper", {}),
    "psrl": ("nchain", "psrl-paper", {}),
    "mmbi": ("nchain", "mmbi", {}),
    "bql": ("nchain", "bql", {}),
    "q-learning": ("nchain", "q-learning", {}),
    "oracle": ("nchain", "oracle", {}),
    "bss": ("nchain", "bss", {}),
    "vdqn": ("nchain", "vdqn", {}),
    "bbi, linear-model": ("linear-model", "bbi", {}),
    "vdqn, linear-model": ("linear-model", "vdqn", {}),
    "psrl, linear-model": ("linear-model", "psrl", {}),
    "gptd, linear-model": ("linear-model", "gptd", {}),
}
SAME_RUNS, VALUES = 0.9, 0.01


def values_apart(here, there) -> float | None:
    """Largest difference of the plans' mean values, as a share of their size."""
    if "value_mean" not in here.info:
        return None
    both = here.info.merge(there.info, on=["run", "step"])
    # Before each pair has been tried, values are sums of large rewards of either sign; their spread is the scale.
    scale = 1 + both["value_mean_x"].abs() + both.get("value_sd_x", 0)
    # A number that is none on one of them must not go unnoticed.
    return float(((both["value_mean_x"] - both["value_mean_y"]).abs() / scale).max(skipna=False))


def compare(name: str, steps: int, runs: int, device: str) -> dict:
    """Both devices at once: each compiles for itself."""
    env, agent, settings = AGENTS[name]
    began = time.perf_counter()

    def go(where):
        return bellief.run(env, agent, steps, runs, settings=settings, device=where, width=runs)

    with ThreadPoolExecutor(2) as pool:
        here, there = pool.map(go, ("cpu", device))
    rounding = 1e-3 if env == "linear-model" else 0
    same = float(np.mean(np.isclose(here.total[:, -1], there.total[:, -1], rtol=rounding, atol=0)))
    apart = values_apart(here, there)
    agrees = same >= SAME_RUNS and (apart is None or apart <= VALUES)
    seconds = round(time.perf_counter() - began, 1)
    return {"same_runs": same, "values_apart": apart, "agrees": agrees, "seconds": seconds}


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", choices=tuple(AGENTS), default=tuple(AGENTS))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--device", default="gpu", help="what to compare with the processor")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {}
    for name in options.agents:
        found[name] = compare(name, options.steps, options.runs, options.device)
        print(name, json.dumps(found[name]), flush=True)
        if options.out:
            options.out.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(not all(one["agrees"] for one in found.values()))


if __name__ == "__main__":
    main()
