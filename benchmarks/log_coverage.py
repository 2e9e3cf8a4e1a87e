"""Do 90% intervals of `bellief.evaluate` hold the exact value? Logs of well-known environments say.

Each environment is an exact table; a log comes from stepping it with a behaviour policy (half the optimal policy, half
uniform), and the optimal policy is evaluated from its first n steps, for several n, with the priors and methods named.
One row per log, size and method is written; rows that are there already are not computed again.

    python benchmarks/log_coverage.py --export                    # tables of the environments; needs Gymnasium
    python benchmarks/log_coverage.py --jobs 16 --logs 100 --out docs/results/log-coverage.csv
    python benchmarks/log_coverage.py --out docs/results/log-coverage.csv --summary
"""

import argparse
import csv
import dataclasses
import functools
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

TABLES = Path(__file__).parent / "data" / "log_tables.npz"
DISCOUNT, LEVEL, DRAWS = 0.99, 0.9, 200
FIELDS = ("probability", "next_state", "reward", "terminated", "start")
GYMNASIUM = {
    "frozenlake-4x4": ("FrozenLake-v1", {}),
    "frozenlake-8x8": ("FrozenLake-v1", {"map_name": "8x8"}),
    "cliffwalking-slippery": ("CliffWalking-v1", {"is_slippery": True}),
    "cliffwalking": ("CliffWalking-v1", {}),
    "taxi": ("Taxi-v4", {}),
}
OWN = ("nchain", "riverswim", "doubleloop", "grid5")
SIZES = {
    "frozenlake-4x4": (100, 300, 1_000, 3_000, 10_000),
    "frozenlake-8x8": (1_000, 3_000, 10_000),
    "cliffwalking-slippery": (300, 1_000, 3_000, 10_000),
    "cliffwalking": (100, 300, 1_000, 3_000),
    "taxi": (3_000, 10_000),
    "nchain": (30, 100, 300, 1_000),
    "riverswim": (100, 300, 1_000, 3_000),
    # Chosen when the model was fixed; nothing was ever chosen by them.
    "doubleloop": (30, 100, 300, 1_000),
    "grid5": (300, 1_000, 3_000),
}
METHODS = {"logged": {}, "logged-0.1": {"prior": "logged-0.1"}, "bootstrap": {"method": "bootstrap"}}
COLUMNS = ("task", "size", "log", "method", "truth", "low", "high", "mean", "covered", "supported", "told", "seconds")


def export() -> None:
    """Write the tables of all environments."""
    from bellief.envs import make
    from bellief.envs.discrete import read_table

    arrays: dict[str, Any] = {}
    for name in SIZES:
        environment = make(name) if name in OWN else read_table(GYMNASIUM[name][0], **GYMNASIUM[name][1])
        for field in FIELDS:
            arrays[f"{name}/{field}"] = np.asarray(getattr(environment.outcomes, field))
        arrays[f"{name}/limit"] = np.array(environment.time_limit or 0)
    np.savez_compressed(TABLES, **arrays)


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """An exact table with its optimal policy."""

    probability: np.ndarray
    next_state: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    start: np.ndarray
    limit: int

    @functools.cached_property
    def optimal(self) -> np.ndarray:
        """The optimal action of each state, and its values, by policy iteration."""
        best = np.zeros(len(self.start), int)
        while True:
            values = self.values(best)
            following = np.where(self.terminated, 0.0, values[self.next_state])
            gains = (self.probability * (self.reward + DISCOUNT * following)).sum(-1)
            better = gains.max(-1) > gains[np.arange(len(best)), best] + 1e-9
            if not better.any():
                return best
            best = np.where(better, gains.argmax(-1), best)

    def values(self, actions: np.ndarray) -> np.ndarray:
        """Exact values of a deterministic policy."""
        rows = np.arange(len(actions))
        chance, following = self.probability[rows, actions], self.next_state[rows, actions]
        chain = np.zeros((len(rows), len(rows)))
        np.add.at(chain, (np.repeat(rows, chance.shape[1]), following.ravel()),
                  (chance * ~self.terminated[rows, actions]).ravel())  # fmt: skip
        return np.linalg.solve(np.eye(len(rows)) - DISCOUNT * chain, (chance * self.reward[rows, actions]).sum(-1))


@functools.cache
def load(name: str) -> Task:
    """A task from the stored tables."""
    with np.load(TABLES) as stored:
        fields = [stored[f"{name}/{field}"] for field in FIELDS]
        fields[3] = fields[3].astype(bool)
        return Task(*fields, int(stored[f"{name}/limit"]))


def make_log(task: Task, name: str, steps: int, log: int) -> dict[str, np.ndarray]:
    """The first steps of the log of that number."""
    rng = np.random.default_rng([37, sorted(SIZES).index(name), log])
    states, actions, _ = task.probability.shape
    edges, first = np.cumsum(task.probability, -1), np.cumsum(task.start)
    best, limit = task.optimal, task.limit or steps + 1
    uniform = rng.random((steps, 4))
    found = {key: np.zeros(steps, int) for key in ("state", "action", "next_state", "episode")}
    found |= {"reward": np.zeros(steps), "terminated": np.zeros(steps, bool)}
    state, age, episode = -1, 0, -1
    for step, (one, two, three, four) in enumerate(uniform):
        if state < 0:
            state, age, episode = (
                min(int(np.searchsorted(first, four * first[-1], "right")), states - 1),
                0,
                episode + 1,
            )
        action = best[state] if one < 0.5 else int(two * actions)
        outcome = min(int(np.searchsorted(edges[state, action], three * edges[state, action, -1], "right")),
                      edges.shape[2] - 1)  # fmt: skip
        following, ended = task.next_state[state, action, outcome], task.terminated[state, action, outcome]
        for key, value in (("state", state), ("action", action), ("next_state", following), ("episode", episode),
                           ("reward", task.reward[state, action, outcome]), ("terminated", ended)):  # fmt: skip
            found[key][step] = value
        age += 1
        state = -1 if ended or age >= limit else following
    return found


def evaluate_log(job: tuple[str, int, tuple[str, ...]]) -> list[dict[str, Any]]:
    """All sizes and methods for one log."""
    import bellief

    name, log, methods = job
    task = load(name)
    states, actions, _ = task.probability.shape
    truth = float(task.start @ task.values(task.optimal))
    whole = make_log(task, name, max(SIZES[name]), log)
    found = []
    for size in SIZES[name]:
        part = {key: value[:size] for key, value in whole.items()}
        data = bellief.Transitions.from_arrays(
            part["state"], part["action"], part["reward"], part["next_state"], part["terminated"], part["episode"],
            states=states, actions=actions,
        )  # fmt: skip
        for method in methods:
            began = time.perf_counter()
            value = bellief.evaluate(
                data, task.optimal, DISCOUNT, draws=DRAWS, seed=log, level=LEVEL, start=task.start, **METHODS[method]
            )
            summary = value.start_summary()
            found.append({
                "task": name, "size": size, "log": log, "method": method, "truth": truth, "low": summary["low"],
                "high": summary["high"], "mean": summary["mean"],
                "covered": int(summary["low"] <= truth <= summary["high"]),
                "supported": getattr(value, "supported", None), "told": int(bool(getattr(value, "cannot_tell", None))),
                "seconds": time.perf_counter() - began,
            })  # fmt: skip
    return found


def summarise(path: Path) -> None:
    """Coverage, its error, median width and mean bias of each cell."""
    import pandas as pd

    table = pd.read_csv(path)
    table["width"], table["bias"] = table.high - table.low, table["mean"] - table.truth
    for (task, size), rows in table.groupby(["task", "size"], sort=False):
        line = []
        for method, cell in rows.groupby("method"):
            share = cell.covered.mean()
            error = np.sqrt(share * (1 - share) / len(cell))
            line.append(f"{method} {share:.2f} ({error:.2f}) width {cell.width.median():.3g} "
                f"bias {cell.bias.mean():+.3g} "
                        f"told {cell.told.mean():.2f}")  # fmt: skip
        print(f"{task:22s} {size:6d} {rows.log.nunique():3d} logs: " + " | ".join(line))


def main() -> None:
    """Evaluate all logs, or what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--tasks", default=",".join(SIZES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("log-coverage.csv"))
    given = parser.parse_args()
    if given.export:
        return export()
    if not given.summary:
        os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        done = set()
        if given.out.exists():
            with given.out.open(newline="") as lines:
                done = {(row["task"], int(row["log"]), row["method"]) for row in csv.DictReader(lines)}
        jobs = []
        for log in range(given.first, given.first + given.logs):
            for name in given.tasks.split(","):
                left = tuple(method for method in given.methods.split(",") if (name, log, method) not in done)
                jobs += [(name, log, left)] if left else []
        with given.out.open("a", newline="") as lines, ProcessPoolExecutor(given.jobs) as pool:
            table = csv.DictWriter(lines, COLUMNS)
            if given.out.stat().st_size == 0:
                table.writeheader()
            for done_one in as_completed([pool.submit(evaluate_log, job) for job in jobs]):
                table.writerows(done_one.result())
                lines.flush()
    return summarise(given.out)


if __name__ == "__main__":
    main()
