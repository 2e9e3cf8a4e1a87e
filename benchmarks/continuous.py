"""The continuous tasks: steps survived by BBI (ours and the paper's), PSRL, GPTD and VDQN.

    python benchmarks/continuous.py --env pendulum --agents bbi bbi-paper gptd vdqn psrl --runs 10 --out DIR
    python benchmarks/continuous.py --env pendulum --agents bbi --first 0 --runs 2 --out DIR    # a part of it
    python benchmarks/continuous_report.py DIR

Writes one JSON line per environment, agent and run to DIR/continuous-ENV-AGENT-FIRST.jsonl; runs that are there are
not run again, so several processes may each do a part. Run n of every agent meets the same luck and, in LinearModel,
member n of the family.
"""

import argparse
import json
import re
from pathlib import Path

import numpy as np

import bellief
from bellief.experiments.compare import parse_agent

HALF_LIFE = {"pendulum": 2500.0, "linear-model": 1000.0}
AGENT_ORDER = ("bbi", "bbi-paper", "psrl", "gptd", "vdqn")


def marks(steps: int) -> tuple[int, ...]:
    """Steps at which episodes are counted: the ends of the spans that the tables need."""
    return tuple(sorted({mark for mark in (500, 1000, 2000, 5000, 10_000, 20_000, 50_000) if mark <= steps} | {steps}))


def measure(env: str, text: str, first: int, options: argparse.Namespace) -> list[dict]:
    """Some runs of one agent."""
    _, agent, settings = parse_agent(text)
    runs = min(options.width, options.first + options.runs - first)
    result = bellief.run(
        env,
        agent,
        options.steps,
        runs,
        options.seed,
        settings=settings,
        half_life=HALF_LIFE[env],
        width=runs,
        readings=marks(options.steps),
        first_run=first,
    )
    grid = np.unique(np.round(np.geomspace(100, options.steps, 60)).astype(int))
    nearest = np.abs(result.step[:, None] - grid).argmin(0)
    lines = []
    for lane in range(runs):
        counted = {
            str(mark): [int(result.over[lane, at]), int(result.falls[lane, at]), int(result.length[lane, at])]
            for mark in (*marks(options.steps), options.steps - options.steps // 10)
            for at in [list(result.step).index(mark)]
        }
        lines.append(
            {
                "env": env,
                "agent": text,
                "steps": options.steps,
                "seed": options.seed,
                "run": first + lane,
                "counted": counted,
                "curve": [[int(result.step[at]), round(float(result.survived[lane, at]), 1)] for at in nearest],
                "reward": round(float(result.total[lane, -1]), 4),
                "seconds": round(result.seconds / runs, 1),
            }
        )
    return lines


def file_of(options: argparse.Namespace, env: str, text: str) -> Path:
    return options.out / f"continuous-{env}-{re.sub(r'[^a-z0-9]+', '_', text)}-{options.first}.jsonl"


def read(folder: Path) -> list[dict]:
    """All lines of a folder."""
    return [json.loads(line) for path in sorted(folder.glob("continuous-*.jsonl")) for line in path.open()]


def survived(line: dict, first: int, last: int) -> float:
    """Mean length of the episodes that were over between two steps; of none, how long the present one has lasted."""
    over, _, length = line["counted"][str(last)]
    over_before, _, length_before = line["counted"][str(first)] if first else (0, 0, 0)
    return (length - length_before) / (over - over_before) if over > over_before else last - length


def main() -> None:
    """Measure what is not there yet, or report what is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", nargs="+", default=["pendulum"], choices=sorted(HALF_LIFE))
    parser.add_argument("--agents", nargs="+", default=list(AGENT_ORDER))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=5, help="runs computed side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/continuous"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for env in options.env:
        for text in options.agents:
            path = file_of(options, env, text)
            done = {
                (line["run"], line["steps"], line["seed"])
                for line in map(json.loads, path.read_text().splitlines() if path.exists() else [])
            }
            for first in range(options.first, options.first + options.runs, options.width):
                if (first, options.steps, options.seed) in done:
                    continue
                lines = measure(env, text, first, options)
                with path.open("a") as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines)
                begin = options.steps - options.steps // 10
                late = [survived(line, begin, options.steps) for line in lines]
                falls = [line["counted"][str(options.steps)][1] for line in lines]
                print(
                    f"{env:12} {text:16} runs {first}-{first + len(lines) - 1} survived {np.mean(late):.0f} "
                    f"falls {falls} {lines[0]['seconds']} s a run",
                    flush=True,
                )


if __name__ == "__main__":
    main()
