"""Exploration: regret on DeepSea and total reward on the tasks of the literature, the same noise for all agents.

    python benchmarks/exploration.py --jobs 16 --minutes 8.5 --part 1 --csv out.csv   # PARTS[1], the first ones first
    python benchmarks/exploration.py --tasks deep-sea-10 riverswim --agents bbi ube --runs 5
    python benchmarks/exploration.py --page                                    # only write the page from the CSVs

A row is appended to the CSV as soon as a run is finished, and runs that it holds are not computed again, so an
interrupted call is continued by repeating it. Needs jax, numpy, scipy and pandas. The tables of FrozenLake,
CliffWalking and Taxi are in data/gymnasium_tables.npz, which `--export` writes where Gymnasium is installed. Run number
n of every agent meets the same noise.
"""

import argparse
import csv
import itertools
import os
import queue
import sys
import tempfile
import time
import warnings
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
TABLES = HERE / "data" / "gymnasium_tables.npz"
RESULTS = HERE.parent / "docs" / "results"
# Seconds of work that a process takes at once: as many runs of one agent on one task, compiled once, as fit.
PORTION = 40.0


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
    # Whether an agent finds the far end early; later a stuck run may free itself.
    "nchain-10000": Task("nchain", {}, 10_000),
    "doubleloop": Task("doubleloop", {}, 100_000),
    "lavalake": Task("lavalake", {}, 100_000),
    "lavalake10": Task("lavalake10", {}, 100_000),
    "maze": Task("maze", {}, 1_000_000),
    # Never used to choose between agents.
    "six-arms": Task("made", {}, 50_000),
    "garnet": Task("made", {}, 50_000),
    # As BAMCP's paper runs them: a thousand steps.
    "riverswim-1000": Task("riverswim", {}, 1000),
    "grid5-1000": Task("grid5", {}, 1000),
    "grid10-1000": Task("grid10", {}, 1000),
}

AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bbi": ("bbi", {}),
    "psrl": ("psrl", {}),
    "ube": ("ube", {}),
    "q-learning": ("q-learning", {}),
    "rlsvi": ("rlsvi", {}),
    "beb": ("beb", {}),
    "psrl-paper": ("psrl-paper", {}),
    "bbi-paper, optimistic": ("bbi-paper", {"rule": "optimistic"}),
    "bamcp-1000": ("bamcp", {"simulations": 1000}),
    "bamcp-10000": ("bamcp", {"simulations": 10_000}),
}
OURS = "bbi"
# How rows of `FORMER_ROWS`, of tasks that the present agent was not run on, are labelled.
FORMER, FORMER_ROWS = "bbi, former", "exploration-thousand.csv"
TREES = ("riverswim-1000", "grid5-1000", "grid10-1000")
GYMNASIUM = {
    "frozenlake-4x4": ("FrozenLake-v1", {}),
    "frozenlake-8x8": ("FrozenLake-v1", {"map_name": "8x8"}),
    "cliffwalking": ("CliffWalking-v1", {}),
    "cliffwalking-slippery": ("CliffWalking-v1", {"is_slippery": True}),
    "taxi": ("Taxi-v4", {}),
}


class Cell(NamedTuple):
    """Runs of an agent on a task, and about how many seconds of one core each takes."""

    task: str
    agent: str
    runs: int
    seconds: float


UNTUNED = ("six-arms", "garnet")
# Seconds a run of the default agents on each task.
BBI = {
    "dearden-maze": 60, "rooms": 40, "taxi": 30, "deep-sea-40": 27, "frozenlake-8x8": 20, "cliffwalking-slippery": 12,
    "frozenlake-4x4": 10, "deep-sea-30": 8, "grid10": 8, "cliffwalking": 8, "garnet": 8, "lavalake10": 8, "lavalake": 5,
    "six-arms": 5, "nchain": 4, "doubleloop": 4, "deep-sea-20": 4, "grid5": 3, "deep-sea-10-stochastic": 2,
    "deep-sea-10": 2, "riverswim": 2,
}  # fmt: skip
PSRL = {
    "taxi": 60, "deep-sea-20": 14, "frozenlake-8x8": 10, "garnet": 8, "lavalake10": 8, "cliffwalking": 7,
    "cliffwalking-slippery": 5, "frozenlake-4x4": 6, "deep-sea-10-stochastic": 6, "grid10": 6, "six-arms": 5,
    "lavalake": 5, "nchain": 4, "doubleloop": 4, "riverswim": 4, "deep-sea-10": 4, "grid5": 2,
}  # fmt: skip
UBE = {"garnet": 40, "cliffwalking": 40, "frozenlake-4x4": 20, "six-arms": 5, "grid5": 3, "riverswim": 1}
# Two parts of about two hours of one core each, in order of importance; the longest first where all are needed.
PARTS = {
    1: (
        Cell("maze", "bbi", 5, 150),
        *(Cell(task, "bbi", 20, cost) for task, cost in BBI.items()),
        *(Cell(task, "q-learning", 20, 1) for task in (*BBI, "maze")),
        *(Cell(task, "psrl", 5 if task == "taxi" else 20, cost) for task, cost in PSRL.items()),
        *(Cell(task, "ube", 10, cost) for task, cost in UBE.items()),
    ),
    2: (
        *(Cell(task, "bamcp-10000", 2, 300) for task in TREES),
        *(Cell(task, "bamcp-1000", 4, 40) for task in TREES),
        Cell("deep-sea-10", "ube", 20, 56),
        *(Cell(task, agent, 20, 2) for task in TREES for agent in ("bbi", "psrl", "ube", "q-learning")),
        Cell("dearden-maze", "psrl", 10, 45),
        Cell("rooms", "psrl", 5, 60),
        *(Cell(task, "bbi-paper, optimistic", 5, 60) for task in ("nchain", "doubleloop", "lavalake")),
        Cell("grid10", "ube", 5, 60),
        Cell("frozenlake-8x8", "ube", 5, 80),
        Cell("cliffwalking-slippery", "ube", 5, 40),
        Cell("deep-sea-10-stochastic", "ube", 5, 60),
        Cell("deep-sea-30", "psrl", 4, 60),
        Cell("maze", "psrl", 2, 200),
        *(Cell(task, "ube", 20, cost) for task, cost in UBE.items()),
        Cell("lavalake10", "bbi-paper, optimistic", 3, 300),
    ),
}
CELLS = tuple(cell for part in PARTS.values() for cell in part)
COLUMNS = ("task", "agent", "run", "steps", "total", "last_fifth", "last_half", "regret", "misses", "solved", "seconds")


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


def six_arms() -> dict[str, np.ndarray]:
    """After Strehl and Littman (2008): action i of the middle leads to arm i, ever more rarely the more it pays; in the
    arm one action earns and stays, the others lead back. Which action that is, is ours: the next one.
    """
    chances, pay = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01), (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)
    probability, following, reward = (np.zeros((7, 6, 2)) for _ in range(3))
    probability[1:, :, 0] = 1
    for arm in range(6):
        probability[0, arm] = chances[arm], 1 - chances[arm]
        following[0, arm] = arm + 1, 0
        following[arm + 1, (arm + 1) % 6, 0], reward[arm + 1, (arm + 1) % 6, 0] = arm + 1, pay[arm]
    return {"probability": probability, "next_state": following, "reward": reward, "start": np.eye(7)[0]}


def garnet(states: int = 60, actions: int = 4, branching: int = 3) -> dict[str, np.ndarray]:
    """A random MDP (Archibald et al. 1995): random successors with random chances; one pair in twenty pays, 0 to 1."""
    generator = np.random.default_rng(2026)
    shape = (states, actions)
    following = np.stack([generator.permuted(np.arange(states))[:branching] for _ in range(states * actions)])
    paid = (generator.uniform(size=shape) < 0.05) * generator.uniform(size=shape)
    return {
        "probability": generator.dirichlet(np.ones(branching), shape),
        "next_state": following.reshape(*shape, branching),
        "reward": np.repeat(paid[..., None], branching, axis=-1),
        "start": np.eye(states)[0],
    }


def build(name: str) -> Any:
    """The environment of a task."""
    from bellief.envs import Environment, make
    from bellief.envs.nchain import ChainView
    from bellief.mdp.tabular_mdp import Outcomes

    task = TASKS[name]
    limit = None
    if task.environment == "made":
        made = {"six-arms": six_arms, "garnet": garnet}[name]()
        ends = np.zeros(made["probability"].shape, bool)
        outcomes = Outcomes(**made | {"next_state": made["next_state"].astype(np.int32), "terminated": ends})
    elif task.environment == "table":
        with np.load(TABLES) as stored:
            outcomes = Outcomes(*(stored[f"{name}/{field}"] for field in Outcomes._fields))
            limit = int(stored[f"{name}/limit"]) or None
    else:
        return make(task.environment, **task.parameters)
    states, actions, _ = outcomes.probability.shape
    numbers = tuple(str(action) for action in range(actions))
    return Environment(name, outcomes, numbers, {}, ChainView(states), limit)


def settings_of(task: str, agent: str) -> dict[str, Any]:
    """UBE is given what its authors give it: on DeepSea of size L every transition counts L times."""
    settings = dict(AGENTS[agent][1])
    if agent == "ube" and TASKS[task].environment == "deep-sea":
        settings["repeat"] = TASKS[task].parameters["size"]
    return settings


def compute(task: str, agent: str, run: int) -> dict[str, Any]:
    """One run of an agent on a task: the row of the CSV."""
    import bellief

    environment, about = build(task), TASKS[task]
    each = () if about.episode is None else tuple(range(about.episode, about.steps + 1, about.episode))
    shares = {"last_fifth": 0.2, "last_half": 0.5}
    starts = {name: about.steps - round(share * about.steps) for name, share in shares.items()}
    began = time.process_time()
    result = bellief.run(
        environment, AGENTS[agent][0], about.steps, 1, seed=0, first_run=run, settings=settings_of(task, agent),
        readings=(*each, *starts.values()), width=1, device="cpu",
    )  # fmt: skip
    total = dict(zip(result.step.tolist(), result.total[0].tolist(), strict=True))
    row = {"task": task, "agent": agent, "run": run, "steps": about.steps, "total": total[about.steps]}
    for name, first in starts.items():
        row[name] = (total[about.steps] - total[first]) / (about.steps - first)
    if each and about.optimum is not None:
        row |= regrets(np.diff([total[step] for step in each], prepend=0.0), about.optimum)
    return row | {"seconds": time.process_time() - began}


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


def portions(cells: list[Cell], done: set[tuple[str, str, int]]) -> list[tuple[str, str, list[int]]]:
    """What is left to do, in pieces that a process takes at once, in order of importance."""
    pieces = []
    for cell in cells:
        left = [run for run in range(cell.runs) if (cell.task, cell.agent, run) not in done]
        done |= {(cell.task, cell.agent, run) for run in left}
        together = max(1, round(PORTION / cell.seconds))
        pieces += [(cell.task, cell.agent, left[at : at + together]) for at in range(0, len(left), together)]
    return pieces


def serve(given: Any, answers: Any) -> None:
    """A process that computes pieces until it is told to end."""
    warnings.simplefilter("ignore")
    while (piece := given.get()) is not None:
        task, agent, runs = piece
        for run in runs:
            try:
                answers.put(compute(task, agent, run))
            except Exception as error:  # one that fails must not stop the others
                answers.put({"task": task, "agent": agent, "run": run, "error": f"{type(error).__name__}: {error}"})
    answers.put(None)


def work(cells: list[Cell], jobs: int, minutes: float, path: Path) -> None:
    """Compute what the CSV does not have yet, and append to it as results come; end when the time is over."""
    ends, done = time.monotonic() + 60 * minutes, set()
    if path.exists():
        with path.open() as file:
            done = {(row["task"], row["agent"], int(row["run"])) for row in csv.DictReader(file)}
    else:
        path.write_text(",".join(COLUMNS) + "\n")
    context = get_context("spawn")
    given, answers = context.Queue(), context.Queue()
    pieces = portions(cells, done)
    for piece in (*pieces, *[None] * jobs):
        given.put(piece)
    processes = [
        context.Process(target=serve, args=(given, answers), daemon=True) for _ in range(min(jobs, len(pieces)))
    ]
    for process in processes:
        process.start()
    ended = 0
    while ended < len(processes) and time.monotonic() < ends:
        try:
            row = answers.get(timeout=1)
        except queue.Empty:
            continue
        if row is None:
            ended += 1
        elif "error" in row:
            print(row["task"], row["agent"], row["run"], row["error"], file=sys.stderr, flush=True)
        else:
            with path.open("a", newline="") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
            print(row["task"], row["agent"], row["run"], f"{row['seconds']:.1f} s", flush=True)
    if ended < len(processes):
        print(f"The time is over; {len(processes) - ended} processes were still at work.", file=sys.stderr)
    for process in processes:
        process.terminate()


def with_former(frame: pd.DataFrame, former: pd.DataFrame) -> pd.DataFrame:
    """The rows, with those of `former` that they lack: of other agents as they are, of ours under its own label where a
    task has no rows of the present agent.
    """
    own = former[(former.agent == OURS) & ~former.task.isin(frame[frame.agent == OURS].task)].assign(agent=FORMER)
    both = pd.concat([frame, former[former.agent != OURS], own])
    return both.drop_duplicates(["task", "agent", "run"]).reset_index(drop=True)


def page(frame: pd.DataFrame, note: str = "") -> str:
    """The tables in Markdown; a section without rows is left out."""
    return "\n".join(
        [
            INTRODUCTION,
            *(["", note] if note else []),
            *_sea(frame),
            *_rewards(frame),
            *_trees(frame),
            *_growth(frame),
            "",
        ]
    )


def _with_error(values: pd.Series, digits: int) -> str:
    if len(values) == 1:
        return f"{values.mean():.{digits}f}"
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ({error:.{digits}f})"


def _sea(frame: pd.DataFrame) -> list[str]:
    lines = [
        "",
        "## DeepSea",
        "",
        "| size | agent | runs | regret | episodes below half | solved after | less `bbi` |",
    ]
    lines.append("|---|---|---|---|---|---|---|")
    for task in [name for name in TASKS if name.startswith("deep-sea") and TASKS[name].optimum is not None]:
        own = frame[frame.task == task]
        ours = own[own.agent == OURS].set_index("run").regret
        for agent in [name for name in (FORMER, *AGENTS) if name in set(own.agent)]:
            rows = own[own.agent == agent]
            paired = (rows.set_index("run").regret - ours).dropna()
            difference = "" if agent == OURS or paired.empty else _with_error(paired, 1)
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
        "| task | steps | agent | runs | all steps | last fifth | less `bbi` | s a run |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for task in [name for name in TASKS if name not in TREES and TASKS[name].environment != "deep-sea"]:
        lines += _compared(frame[frame.task == task], task)
    for task in [name for name in TASKS if TASKS[name].parameters.get("stochastic")]:
        lines += _compared(frame[frame.task == task], task)
    return lines


def _compared(own: pd.DataFrame, task: str) -> list[str]:
    ours = own[own.agent == OURS].set_index("run").total
    lines = []
    for agent in [name for name in (FORMER, *AGENTS) if name in set(own.agent)]:
        rows, steps = own[own.agent == agent], TASKS[task].steps
        paired = (rows.set_index("run").total - ours).dropna() / steps
        difference = "" if agent == OURS or paired.empty else _with_error(paired, 5)
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

Made by `python benchmarks/exploration.py --page`; every run is a row of `exploration.csv` or, where it does not depend
on the present default of `bbi`, of `exploration-thousand.csv`. Rows `bbi` were computed with the default agent as it
is (of tasks that it was not run on, rows `bbi, former` would show an earlier default). Numbers in brackets are standard
errors over runs; "less `bbi`" is the difference to that agent in the same runs, which meet the same noise.
Seconds are processor time of one core, compilation included. Cells of the script that have no row here were not run.

Every agent has its default settings on all tasks, except that `ube` counts every transition L times on DeepSea of size
L, as its authors do. Its prior is theirs: Dirichlet(1 / sqrt(S)) rows and mean rewards N(0, 1), all but known after one
visit. Its plans are dense: on DeepSea of size 20 a run was not finished after 11 minutes of processor time, so that
sizes from 20 on and Taxi are without it here. On DeepSea action 1
moves right in every cell, as theirs does; nothing in `bbi` depends on that.

Two definitions of regret on DeepSea: 0.99 less the return, summed over 1,000 episodes; and the number of episodes that
return less than half of that. "Solved" is the first episode after which more than a tenth of all so far have reached
the treasure. Published for exact UBE, sizes 10, 20, 30 and 40: regret 55, 148, 318, 517; solved after 33, 155, 353, 574
episodes; for PSRL regret 132, 382, 741, 989 (recomputed from the raw data of Luis et al. 2023, five seeds).

The policy that is optimal for the agents' discount of 0.99, followed from the first step (agent `oracle`, 20 runs),
earns 0.0166 a step on FrozenLake 4x4, 0.0062 on 8x8 (its time limit of 100 steps, which no agent is told of, makes
other policies better there), -1.0000 on CliffWalking and 0.6081 on Taxi.
No agent and no setting was chosen on `six-arms` and `garnet`.

Taxi-v4 through the real Gymnasium environment, 100,000 steps x 5 runs, takes 155 s on two cores (`bellief run --env
Taxi-v4 --agent bbi --steps 100000 --runs 5`; reward 0.488 a step, 0.615 at the end). With the former default the
learned prior added 6% to a plan of a hundred steps back on the Maze, 8% on
Grid10, and a fifth to a third on NChain, where a plan takes a quarter of a millisecond."""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), help="only these")
    parser.add_argument("--agents", nargs="+", choices=list(AGENTS), help="only these")
    parser.add_argument("--part", type=int, choices=list(PARTS), help="only these cells")
    parser.add_argument("--runs", type=int, help="so many runs of every cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--minutes", type=float, default=1e6, help="end after so many; what is finished is kept")
    parser.add_argument("--csv", type=Path, default=RESULTS / "exploration.csv")
    parser.add_argument("--page", action="store_true", help="write docs/results/exploration.md from the CSV")
    parser.add_argument("--note", default="", help="a paragraph for the page")
    parser.add_argument("--export", action="store_true", help="write the tables of Gymnasium's tasks only")
    arguments = parser.parse_args()
    if arguments.export:
        export()
        return
    if arguments.page:
        frame = with_former(pd.read_csv(arguments.csv), pd.read_csv(RESULTS / FORMER_ROWS))
        (RESULTS / "exploration.md").write_text(page(frame, arguments.note))
        return
    # Every process is one thread, since they share the cores; programs are compiled once for all.
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ.update(PJRT_NPROC="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", folder)
        work(chosen(arguments), arguments.jobs, arguments.minutes, arguments.csv)


def chosen(arguments: argparse.Namespace) -> list[Cell]:
    """The cells that the command line asks for: those of CELLS, or every pair of tasks and agents that are named."""
    tasks, agents = arguments.tasks, arguments.agents
    every = CELLS if arguments.part is None else PARTS[arguments.part]
    cells = [cell for cell in every if cell.task in (tasks or TASKS) and cell.agent in (agents or AGENTS)]
    if tasks and agents:
        known = {(cell.task, cell.agent) for cell in cells}
        cells += [Cell(*pair, 20, PORTION) for pair in itertools.product(tasks, agents) if pair not in known]
    return cells if arguments.runs is None else [cell._replace(runs=arguments.runs) for cell in cells]


if __name__ == "__main__":
    sys.exit(main())
