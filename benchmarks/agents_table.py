"""Tables from what benchmarks/agents.py measured: every run's numbers as CSV, means and paired differences as Markdown.

    python benchmarks/agents_table.py DIR/agents.jsonl --csv docs/results/agents-100k.csv --steps 100000

Takes JSON lines, CSV files of an earlier call and folders of sweeps; where two hold the same runs, the later one wins.
Prints the tables.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from agents import spans
from bellief.sweeps import open_store

NAMES = {
    "nchain": "NChain",
    "doubleloop": "DoubleLoop",
    "lavalake": "LavaLake 5x7",
    "lavalake10": "LavaLake 10x10",
    "maze": "Maze",
}
OPTIMUM = {"nchain": 3.6768, "doubleloop": 0.4, "lavalake": 2.6774, "lavalake10": 1.3880, "maze": 0.0942}
COLUMNS = ["env", "agent", "steps", "run", "early", "last_half", "last_tenth", "gain"]
SPANS = ["early", "last_half", "last_tenth", "gain"]


def read(path: Path, cut: int | None = None) -> pd.DataFrame:
    """One row per run."""
    if path.is_dir():
        return from_sweep(path, cut)
    if path.suffix == ".csv":
        return pd.read_csv(path)
    rows = []
    for line in map(json.loads, path.read_text().splitlines()):
        fixed = {"env": line["env"], "agent": line["agent"], "steps": line["steps"]}
        rows += [
            {**fixed, "run": run, **{span: line[span][run] for span in SPANS if line[span]}}
            for run in range(line["runs"])
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def from_sweep(folder: Path, cut: int | None) -> pd.DataFrame:
    """The finished conditions of a sweep whose readings hold the ends of the spans, and their beginnings to `cut`."""
    frames = []
    for condition in open_store(folder).conditions:
        if not condition.cells:
            continue
        result = condition.result()
        at = dict(zip(result.step.tolist(), result.total.T, strict=True)) | {0: np.zeros(result.runs)}
        settings = ",".join(f"{name}={value}" for name, value in condition.setup.agent_settings.items())
        agent = ":".join(filter(None, (result.agent, settings)))
        for last in {condition.steps, cut if cut in at else condition.steps}:
            # The policy of the end is not the one of an earlier step; a span that was not read has no reward.
            gain = result.gain if last == condition.steps else np.nan
            columns = {"env": result.env, "agent": agent, "steps": last, "run": range(result.runs), "gain": gain}
            for name, (first, end) in spans(result.env, last).items():
                known = first in at and end in at
                columns[name] = np.round((at[end] - at[first]) / (end - first), 7) if known else np.nan
            frames.append(pd.DataFrame(columns)[COLUMNS])
    return pd.concat(frames, ignore_index=True)


def digits(env: str) -> int:
    """Decimals that tell agents apart."""
    return 4 if OPTIMUM[env] < 1 else 3


def summary(values: pd.Series, env: str) -> str:
    """Mean and standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits(env)}f} ({error:.{digits(env)}f})"


def paired(rows: pd.DataFrame, base: pd.DataFrame, env: str) -> str:
    """Difference to the base agent over the runs both have, in per cent of the optimum; 95% bootstrap interval."""
    both = rows.set_index("run")["last_half"].sub(base.set_index("run")["last_half"]).dropna().to_numpy()
    if len(both) < 2:
        return ""
    both = 100 * both / OPTIMUM[env]
    draws = np.random.default_rng(0).choice(both, (10_000, len(both))).mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{both.mean():+.2f}% [{low:.2f}, {high:.2f}], {len(both)} runs"


def table(data: pd.DataFrame, agents: list[str], cell) -> str:
    """One row per agent, one column per task."""
    envs = [env for env in NAMES if env in set(data["env"])]
    lines = ["| agent | " + " | ".join(NAMES[env] for env in envs) + " |", "|---" * (len(envs) + 1) + "|"]
    for agent in agents:
        cells = []
        for env in envs:
            rows = data[(data["env"] == env) & (data["agent"] == agent)]
            cells.append(cell(rows, env) if len(rows) else "")
        lines.append(f"| {agent} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Read, merge, write the CSV, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--csv", type=Path, help="where to write every run's numbers")
    parser.add_argument("--steps", type=int, nargs="+", help="keep runs of these lengths only")
    parser.add_argument("--cut", type=int, help="use the beginnings of longer runs of a sweep too, up to this step")
    parser.add_argument("--base", default="psrl", help="the agent that differences are taken to")
    options = parser.parse_args()
    data = pd.concat([read(path, options.cut) for path in options.files], ignore_index=True)
    if options.steps:
        data = data[data["steps"].isin(options.steps)]
    data = data.drop_duplicates(["env", "agent", "steps", "run"], keep="last")
    data = data.sort_values(["env", "agent", "steps", "run"], kind="stable")
    if options.csv:
        data.to_csv(options.csv, index=False)
    agents = [options.base, *sorted(set(data["agent"]) - {options.base})]

    def difference(rows, env):
        return paired(rows, data[(data["env"] == env) & (data["agent"] == options.base)], env)

    for title, cell in (
        ("Reward per step in the last half (standard error)", lambda rows, env: summary(rows["last_half"], env)),
        ("Reward per step at the beginning", lambda rows, env: summary(rows["early"], env)),
        ("The lowest run in the last half", lambda rows, env: f"{rows['last_half'].min():.{digits(env)}f}"),
        (f"Difference to {options.base} in the last half, in per cent of the optimum", difference),
    ):
        print(f"## {title}\n\n{table(data, agents, cell)}\n")


if __name__ == "__main__":
    main()
