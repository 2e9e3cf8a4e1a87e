"""The comparison of agents over the paper's discrete tasks: final and early reward, and paired differences to PSRL.

    python benchmarks/agents.py --env nchain doubleloop --agents psrl-paper bbi-paper:rule=optimistic --out DIR

Writes one JSON line per environment and agent to DIR/agents.jsonl (appending: finished pairs are not run again), with
the reward of every run in the spans that the tables in docs/results need.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np

import bellief
from bellief.experiments.compare import best_average, parse_agent

RUNS = {"nchain": 50, "doubleloop": 50, "lavalake": 20, "lavalake10": 30, "maze": 30}
EARLY = {"maze": 20_000}


def spans(env: str, steps: int) -> dict[str, tuple[int, int]]:
    """Early reward, last half and last tenth, as pairs of steps."""
    return {
        "early": (0, min(EARLY.get(env, 1_000), steps)),
        "last_half": (steps // 2, steps),
        "last_tenth": (steps - steps // 10, steps),
    }


def measure(env: str, text: str, options: argparse.Namespace) -> dict:
    """One agent in one environment."""
    _, agent, settings = parse_agent(text)
    runs = options.runs or RUNS[env]
    wanted = spans(env, options.steps)
    marks = tuple(sorted({mark for span in wanted.values() for mark in span} - {0}))
    width = options.width or (runs if jax.default_backend() != "cpu" else 10)
    result = bellief.run(env, agent, options.steps, runs, options.seed, settings=settings, width=width, readings=marks)
    at = {0: np.zeros(runs)} | {mark: result.total[:, list(result.step).index(mark)] for mark in marks}
    return {
        "env": env,
        "agent": text,
        "steps": options.steps,
        "runs": runs,
        "seed": options.seed,
        "optimum": best_average(bellief.make(env)),
        "gain": [round(float(value), 6) for value in result.gain],
        **{
            name: [round(float(value), 7) for value in (at[last] - at[first]) / (last - first)]
            for name, (first, last) in wanted.items()
        },
        "seconds": round(result.seconds, 1),
        "backend": jax.default_backend(),
        "curve": {
            "step": result.step.tolist(),
            "mean": np.round(result.smoothed.mean(0), 6).tolist(),
            "p05": np.round(np.quantile(result.smoothed, 0.05, axis=0), 6).tolist(),
            "p95": np.round(np.quantile(result.smoothed, 0.95, axis=0), 6).tolist(),
        },
    }


def main() -> None:
    """Measure what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", nargs="+", default=list(RUNS))
    parser.add_argument("--agents", nargs="+", required=True)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=None, help="runs; by default the paper's number for each task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=None)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "agents.jsonl"
    done = {
        (line["env"], line["agent"], line["steps"], line["seed"])
        for line in map(json.loads, path.read_text().splitlines() if path.exists() else [])
    }
    for env in options.env:
        for text in options.agents:
            if (env, text, options.steps, options.seed) in done:
                continue
            line = measure(env, text, options)
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(
                f"{env:11} {text:24} last half {np.mean(line['last_half']):.5f} "
                f"lowest {np.min(line['last_half']):.5f} early {np.mean(line['early']):.4f} {line['seconds']} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
