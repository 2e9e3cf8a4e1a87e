"""BBI in Gymnasium's CartPole-v1, stepped for real; nothing but transitions is known, also not when an episode ends.

    python benchmarks/cartpole.py --out runs/continuous

Writes DIR/cartpole.json: for every run the returns of all episodes that were over, with the step at which each was.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import bellief


def main() -> None:
    """Run, and say for each run what its last 100 episodes returned (all of them, where there were fewer)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--agent", default="bbi")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/continuous"))
    options = parser.parse_args()
    result = bellief.run(options.env, options.agent, options.steps, options.runs, options.seed, width=options.runs)
    lines = []
    for run in range(options.runs):
        own = result.episodes[result.episodes["run"] == run]
        returns = own["reward"].to_numpy()
        lines.append({"run": run, "returns": returns.tolist(), "steps": own["step"].tolist()})
        print(f"run {run}: {len(returns)} episodes, the last 100 returned {np.mean(returns[-100:]):.1f} on average")
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"env": options.env, "agent": options.agent, "steps": options.steps, "runs": lines}
    (options.out / "cartpole.json").write_text(json.dumps(document | {"seconds": round(result.seconds)}) + "\n")


if __name__ == "__main__":
    main()
