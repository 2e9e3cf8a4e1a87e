"""Exploration: regret on DeepSea and total reward on the tasks of the literature, the same noise for all agents.

    python benchmarks/exploration.py --jobs 2                        # everything, 20 runs; resumes from the CSV
    python benchmarks/exploration.py --tasks deep-sea-10 riverswim --agents bbi-learned ube --runs 5
    python benchmarks/exploration.py --page                          # only write the page from the CSV

Needs jax, numpy, scipy and pandas. The tables of FrozenLake, CliffWalking and Taxi are in data/gymnasium_tables.npz,
which `--export` writes where Gymnasium is installed. Run number n of every agent meets the same noise.
"""

import argparse
import csv
import itertools
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
TABLES = HERE / "data" / "gymnasium_tables.npz"
RESULTS = HERE.parent / "docs" / "results"
# Runs of one agent on one task that a process computes in a row: programs are compiled once for them.
TOGETHER = 5


class Task(NamedTuple):
    """An environment by name and parameters, or a table; steps; the length of an episode where regret is counted."""

    environment: str
    parameters: dict[str, Any]
    steps: int
    episode: int | None = None
    optimum: float | None = None


def deep_sea(size: int, stochastic: bool = False) -> Task:
    """A thousand episodes."""
    parameters = {"size": size, "stochastic": stochastic}
    return Task("deep-sea", parameters, 1000 * size, size, None if stochastic else 0.99)


TASKS = {
    **{f"deep-sea-{size}": deep_sea(size) for size in (10, 20, 30, 40)},
    "deep-sea-10-stochastic": deep_sea(10, stochastic=True),
    "riverswim": Task("riverswim", {}, 20_000),
    "rooms": Task("rooms", {}, 200_000, 40, 20.2947),
    "frozenlake-4x4": Task("table", {"name": "frozenlake-4x4"}, 100_000),
    "frozenlake-8x8": Task("table", {"name": "frozenlake-8x8"}, 100_000),
    "cliffwalking": Task("table", {"name": "cliffwalking"}, 50_000),
    "cliffwalking-slippery": Task("table", {"name": "cliffwalking-slippery"}, 50_000),
    "taxi": Task("table", {"name": "taxi"}, 100_000),
    "grid5": Task("grid5", {}, 20_000),
    "grid10": Task("grid10", {}, 50_000),
    "dearden-maze": Task("dearden-maze", {}, 200_000),
    "nchain": Task("nchain", {}, 100_000),
    "doubleloop": Task("doubleloop", {}, 100_000),
    "lavalake": Task("lavalake", {}, 100_000),
    "lavalake10": Task("lavalake10", {}, 200_000),
    "maze": Task("maze", {}, 1_000_000),
    # As BAMCP's paper runs them: a thousand steps.
    "riverswim-1000": Task("riverswim", {}, 1000),
    "grid5-1000": Task("grid5", {}, 1000),
    "grid10-1000": Task("grid10", {}, 1000),
}

AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bbi-learned": ("bbi-learned", {}),
    "psrl-learned": ("psrl-learned", {}),
    "ube": ("ube", {}),
    "q-learning": ("q-learning", {}),
    "rlsvi": ("rlsvi", {}),
    "beb": ("beb", {}),
    "psrl-paper": ("psrl", {}),
    "bbi-paper-optimistic": ("bbi", {"rule": "optimistic"}),
    "bamcp-1000": ("bamcp", {"simulations": 1000}),
    "bamcp-10000": ("bamcp", {"simulations": 10_000}),
}
COMPARED = ("bbi-learned", "psrl-learned", "ube", "q-learning")
TREES = ("riverswim-1000", "grid5-1000", "grid10-1000")
GYMNASIUM = {
    "frozenlake-4x4": ("FrozenLake-v1", {}),
    "frozenlake-8x8": ("FrozenLake-v1", {"map_name": "8x8"}),
    "cliffwalking": ("CliffWalking-v1", {}),
    "cliffwalking-slippery": ("CliffWalking-v1", {"is_slippery": True}),
    "taxi": ("Taxi-v4", {}),
}
COLUMNS = ("task", "agent", "run", "steps", "total", "last_fifth", "regret", "misses", "solved", "seconds")


def export() -> None:
    """Write the tables of Gymnasium's tasks, which need it installed."""
    from bellief.envs.discrete import read_table

    arrays = {}
    for name, (identifier, parameters) in GYMNASIUM.items():
        environment = read_table(identifier, **parameters)
        for field, value in environment.outcomes._asdict().items():
            arrays[f"{name}/{field}"] = value
        arrays[f"{name}/limit"] = np.array(environment.time_limit or 0)
    TABLES.parent.mkdir(exist_ok=True)
    np.savez_compressed(TABLES, **arrays)


def build(name: str) -> Any:
    """The environment of a task."""
    from bellief.envs import Environment, make
    from bellief.envs.nchain import ChainView
    from bellief.mdp.tabular import Outcomes

    task = TASKS[name]
    if task.environment != "table":
        return make(task.environment, **task.parameters)
    with np.load(TABLES) as stored:
        outcomes = Outcomes(*(stored[f"{name}/{field}"] for field in Outcomes._fields))
        limit = int(stored[f"{name}/limit"]) or None
    states, actions, _ = outcomes.probability.shape
    numbers = tuple(str(action) for action in range(actions))
    return Environment(name, outcomes, numbers, {}, ChainView(states), limit)


def settings_of(task: str, agent: str) -> dict[str, Any]:
    """UBE is given what its authors give it: on DeepSea of size L every transition counts L times."""
    settings = dict(AGENTS[agent][1])
    if agent == "ube" and TASKS[task].environment == "deep-sea":
        settings["repeat"] = TASKS[task].parameters["size"]
    return settings


def compute(task: str, agent: str, runs: list[int]) -> list[dict[str, Any]]:
    """Some runs of an agent on a task, one after the other."""
    import bellief

    environment, about = build(task), TASKS[task]
    each = () if about.episode is None else tuple(range(about.episode, about.steps + 1, about.episode))
    rows = []
    for run in runs:
        began = time.perf_counter()
        result = bellief.run(
            environment, AGENTS[agent][0], about.steps, 1, seed=run, settings=settings_of(task, agent),
            readings=(*each, int(0.8 * about.steps)), width=1, device="cpu",
        )  # fmt: skip
        total, late = result.total[0], result.total[0, np.searchsorted(result.step, int(0.8 * about.steps))]
        row = {"task": task, "agent": agent, "run": run, "steps": about.steps, "total": total[-1]}
        row["last_fifth"] = (total[-1] - late) / (0.2 * about.steps)
        if each and about.optimum is not None:
            returns = np.diff(total[np.isin(result.step, each)], prepend=0.0)
            row |= regrets(returns, about.optimum)
        rows.append(row | {"seconds": time.perf_counter() - began})
    return rows


def regrets(returns: np.ndarray, optimum: float) -> dict[str, float]:
    """Regret as lost return; as the number of episodes that return less than half of the optimum; and the episode after
    which more than a tenth of all episodes have not (the definitions of Luis et al. 2023 for an optimum near one).
    """
    reached = returns >= optimum / 2
    share = np.cumsum(reached) / np.arange(1, len(returns) + 1)
    solved = np.flatnonzero(share > 0.1)
    return {
        "regret": float(np.sum(optimum - returns)),
        "misses": float(np.sum(~reached)),
        "solved": float(solved[0]) if len(solved) else np.nan,
    }


def work(arguments: argparse.Namespace, path: Path) -> None:
    """Compute what the CSV does not have yet, and append to it as results come."""
    done = set()
    if path.exists():
        with path.open() as file:
            done = {(row["task"], row["agent"], int(row["run"])) for row in csv.DictReader(file)}
    jobs = []
    for task, agent in itertools.product(arguments.tasks, arguments.agents):
        if agent.startswith("bamcp") and task not in TREES:
            continue
        wanted = [run for run in range(arguments.runs) if (task, agent, run) not in done]
        jobs += [(task, agent, wanted[first : first + TOGETHER]) for first in range(0, len(wanted), TOGETHER)]
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(compute, *job): job for job in jobs}
        for future in as_completed(futures):
            rows = future.result()
            with path.open("a", newline="") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows)
            print(*futures[future][:2], f"{len(rows)} runs, {sum(row['seconds'] for row in rows):.0f} s", flush=True)


def page(frame: pd.DataFrame) -> str:
    """The tables in Markdown; a section without rows is left out."""
    return "\n".join([INTRODUCTION, *_sea(frame), *_rewards(frame), *_trees(frame), *_growth(frame), ""])


def _with_error(values: pd.Series, digits: int) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}f} ({error:.{digits}f})"


def _sea(frame: pd.DataFrame) -> list[str]:
    lines = [
        "",
        "## DeepSea",
        "",
        "| size | agent | runs | regret | episodes below half | solved after | less `bbi-learned` |",
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for task in [name for name in TASKS if name.startswith("deep-sea") and TASKS[name].optimum is not None]:
        own = frame[frame.task == task]
        ours = own[own.agent == "bbi-learned"].set_index("run").regret
        for agent in [name for name in AGENTS if name in set(own.agent)]:
            rows = own[own.agent == agent]
            paired = (rows.set_index("run").regret - ours).dropna()
            difference = "" if agent == "bbi-learned" or paired.empty else _with_error(paired, 1)
            solved = "never" if rows.solved.isna().all() else f"{rows.solved.mean():.0f}"
            lines.append(
                f"| {TASKS[task].parameters['size']} | `{agent}` | {len(rows)} | {_with_error(rows.regret, 1)} | "
                f"{rows.misses.mean():.1f} | {solved} | {difference} |"
            )
    return lines


def _rewards(frame: pd.DataFrame) -> list[str]:
    lines = [
        "",
        "## Reward per step",
        "",
        "| task | steps | agent | runs | all steps | last fifth | less `bbi-learned` | s a run |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for task in [name for name in TASKS if name not in TREES and TASKS[name].environment != "deep-sea"]:
        lines += _compared(frame[frame.task == task], task)
    for task in [name for name in TASKS if TASKS[name].parameters.get("stochastic")]:
        lines += _compared(frame[frame.task == task], task)
    return lines


def _compared(own: pd.DataFrame, task: str) -> list[str]:
    ours = own[own.agent == "bbi-learned"].set_index("run").total
    lines = []
    for agent in [name for name in AGENTS if name in set(own.agent)]:
        rows, steps = own[own.agent == agent], TASKS[task].steps
        paired = (rows.set_index("run").total - ours).dropna() / steps
        difference = "" if agent == "bbi-learned" or paired.empty else _with_error(paired, 5)
        lines.append(
            f"| {task} | {steps:,} | `{agent}` | {len(rows)} | {_with_error(rows.total / steps, 5)} | "
            f"{_with_error(rows.last_fifth, 5)} | {difference} | {rows.seconds.mean():.1f} |"
        )
    return lines


def _trees(frame: pd.DataFrame) -> list[str]:
    if not frame.task.isin(TREES).any():
        return []
    lines = ["", "## A thousand steps, beside a tree search", "", "Total reward; BAMCP searches at every step.", ""]
    lines += ["| task | agent | runs | total | s a run |", "|---|---|---|---|---|"]
    for task, agent in itertools.product(TREES, AGENTS):
        rows = frame[(frame.task == task) & (frame.agent == agent)]
        if len(rows):
            lines.append(
                f"| {task} | `{agent}` | {len(rows)} | {_with_error(rows.total, 1)} | {rows.seconds.mean():.1f} |"
            )
    return lines


def _growth(frame: pd.DataFrame) -> list[str]:
    lines = []
    sizes = {
        name: task.parameters["size"] for name, task in TASKS.items() if task.environment == "deep-sea" and task.optimum
    }
    for agent in AGENTS:
        rows = frame[(frame.agent == agent) & frame.task.isin(sizes)]
        means = rows.groupby("task").misses.mean()
        if len(means) > 1:
            slope, offset = np.polyfit(np.log([sizes[task] for task in means.index]), np.log(np.maximum(means, 1)), 1)
            lines.append(f"- `{agent}`: episodes without the treasure grow as {np.exp(offset):.2f} L^{slope:.2f}.")
    return ["", "## Growth", "", *lines] if lines else []


INTRODUCTION = """# Exploration

Made by `python benchmarks/exploration.py`; every run is a row of `exploration.csv`. Numbers in brackets are standard
errors over runs, rough ones where there are three runs; "less `bbi-learned`" is the difference to that agent in the
same runs, which meet the same noise. Seconds include compilation and were measured on a busy machine. Tasks and agents
of the script that have no row here were not run.

Every agent has its default settings on all tasks (`bbi-learned`: `tolerance=1e-4 most_sweeps=1000 draws=true`;
`psrl-learned`: `tolerance=1e-3 most_sweeps=500`), except that `ube` counts every transition L times on DeepSea of size
L, as its authors do. Its prior is theirs: Dirichlet(1 / sqrt(S)) rows and mean rewards N(0, 1), all but known after one
visit. On DeepSea action 1 moves right in every cell, as theirs does; nothing in `bbi-learned` depends on that.

Two definitions of regret on DeepSea: 0.99 less the return, summed over 1,000 episodes; and the number of episodes that
return less than half of that. "Solved" is the first episode after which more than a tenth of all so far have reached
the treasure. Published for exact UBE, sizes 10, 20, 30 and 40: regret 55, 148, 318, 517; solved after 33, 155, 353, 574
episodes (recomputed from the raw data of Luis et al. 2023, five seeds)."""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--agents", nargs="+", default=[*COMPARED, "bamcp-1000", "bamcp-10000"], choices=list(AGENTS))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of exploration.csv and exploration.md")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--export", action="store_true", help="write the tables of Gymnasium's tasks only")
    arguments = parser.parse_args()
    if arguments.export:
        export()
        return
    path = arguments.output / "exploration.csv"
    if not arguments.page:
        # Every process is one thread: they share the cores.
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
        work(arguments, path)
    frame = pd.read_csv(path)
    (arguments.output / "exploration.md").write_text(page(frame))


if __name__ == "__main__":
    sys.exit(main())
