"""Do 90% intervals hold the exact value on logs of ICU-Sepsis, where most pairs were seen a few times or never?

Logs of the clinicians' policy are made from the table of the PyPI package `icu-sepsis` (`dynamics.npz`; the package is
not imported), with fixed seeds. Each log is evaluated with `bellief.evaluate` and with a bootstrap of the
maximum-likelihood model; one row per log, policy and method is written.

    python benchmarks/icu_sepsis.py --jobs 16 --logs 100 --option belief=sparse --out docs/results/icu-sepsis.csv

Every evaluation runs in a worker process that is ended when it exceeds `--limit` seconds; the row then says "time".
"""

import argparse
import csv
import dataclasses
import functools
import json
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

LEVEL = 0.9
DEATH, SURVIVAL = 713, 714
PROTOTYPE, LEAST_VISITS = "prototype", 5
BOOTSTRAP, BOOTSTRAP_ZERO = "bootstrap-model", "bootstrap-zero"
POLICIES = ("clinicians", "half", "optimal", "uniform", "behaviour")
COLUMNS = (
    "patients", "log", "policy", "method", "status", "truth", "truth_observed_start", "low", "high", "mean", "covered",
    "width", "bias", "seconds", "message", "extra",
)  # fmt: skip


def dynamics_path() -> Path:
    """The table in the folder of the installed package, which is not imported (it would need Gymnasium)."""
    for folder in sys.path:
        path = Path(folder) / "icu_sepsis" / "envs" / "assets" / "dynamics.npz"
        if path.exists():
            return path
    raise SystemExit("icu-sepsis is not installed: unpack its wheel and give --dynamics PATH.")


@dataclasses.dataclass(frozen=True, eq=False)
class Hospital:
    """Table of the 713 states of patients. A last column each for death and survival; survival pays 1."""

    transition: np.ndarray
    start: np.ndarray
    clinicians: np.ndarray

    @property
    def states(self) -> int:
        """States in which something is done."""
        return len(self.start)

    def values(self, policy: np.ndarray) -> np.ndarray:
        """Exact probability of survival from every state."""
        chain = np.einsum("sa,sao->so", policy, self.transition)
        return np.linalg.solve(np.eye(self.states) - chain[:, : self.states], chain[:, SURVIVAL])

    def policy(self, name: str) -> np.ndarray:
        """Action probabilities of a policy by its name."""
        if name in ("clinicians", "behaviour"):
            return self.clinicians
        if name == "uniform":
            return np.full_like(self.clinicians, 1 / self.clinicians.shape[1])
        optimal = self._optimal
        return optimal if name == "optimal" else 0.5 * self.clinicians + 0.5 * optimal

    @functools.cached_property
    def _optimal(self) -> np.ndarray:
        """The best policy among actions that the clinicians take at all, by value iteration."""
        values = np.zeros(self.states)
        while True:
            backup = self.transition[..., SURVIVAL] + self.transition[..., : self.states] @ values
            backup[self.clinicians == 0] = -1
            following = backup.max(1)
            if np.abs(following - values).max() < 1e-12:
                return np.eye(backup.shape[1])[backup.argmax(1)]
            values = following


@functools.cache
def load(path: Path) -> Hospital:
    """Read the table. Nothing happens after death and survival, so their rows are left out."""
    with np.load(path) as table:
        rows, start, clinicians = table["tx_mat"][:DEATH], table["d_0"][:DEATH], table["expert_policy"][:DEATH]
    transition = rows[..., : SURVIVAL + 1]
    return Hospital(transition / transition.sum(-1, keepdims=True), start / start.sum(), clinicians)


@dataclasses.dataclass(frozen=True, eq=False)
class Log:
    """One row per step of every patient, patients one after the other."""

    patient: np.ndarray
    state: np.ndarray
    action: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    reward: np.ndarray


def make_log(hospital: Hospital, patients: int, log: int) -> Log:
    """The log of that number: all patients side by side, one step at a time, until the last has left."""
    rng = np.random.default_rng([19, patients, log])
    actions, outcomes, start = _edges(hospital)
    here = np.arange(patients)
    state = np.searchsorted(start, rng.random(patients), side="right")
    columns = []
    while len(here):
        action = (rng.random((len(here), 1)) >= actions[state, :-1]).sum(1)
        following = np.empty(len(here), int)
        for row, uniform in enumerate(rng.random(len(here))):
            following[row] = np.searchsorted(outcomes[state[row], action[row]], uniform, side="right")
        columns.append((here, state, action, following))
        stays = following < DEATH
        here, state = here[stays], following[stays]
    patient, state, action, following = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    order = np.argsort(patient, kind="stable")
    patient, state, action, following = patient[order], state[order], action[order], following[order]
    return Log(patient, state, action, following, following >= DEATH, (following == SURVIVAL).astype(float))


@functools.cache
def _edges(hospital: Hospital) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cumulative probabilities, the last of each exactly 1, of actions, outcomes and first states."""
    found = []
    for table in (hospital.clinicians, hospital.transition, hospital.start):
        edges = np.cumsum(table, -1)
        found.append(edges / edges[..., -1:])
    return found[0], found[1], found[2]


def bootstrap_values(
    hospital: Hospital, log: Log, policy: np.ndarray, draws: int, seed: int, share_unseen: bool
) -> np.ndarray:
    """Start values in models refitted to patients drawn again with replacement.

    A pair that was not drawn is worth nothing, as in fitted-Q evaluation from zero; with `share_unseen` the policy's
    other actions in its state take its share first, and only a state without any of the policy's actions is worth
    nothing.
    """
    rng = np.random.default_rng([seed, 7])
    states, actions = hospital.clinicians.shape
    patients = int(log.patient[-1]) + 1
    first = np.flatnonzero(np.diff(log.patient, prepend=-1))
    found = np.empty(draws)
    for draw in range(draws):
        times = np.bincount(rng.integers(patients, size=patients), minlength=patients)
        weight = times[log.patient].astype(float)
        visits = np.bincount(log.state * actions + log.action, weight, states * actions).reshape(states, actions)
        taken = np.where(visits > 0, policy, 0)
        total = taken.sum(1, keepdims=True)
        if share_unseen:
            taken = np.divide(taken, total, out=np.zeros_like(taken), where=total > 0)
        each = weight * np.divide(taken, visits, out=np.zeros_like(taken), where=visits > 0)[log.state, log.action]
        chain = np.bincount(log.state * states + np.where(log.terminated, 0, log.next_state),
                            each * ~log.terminated, states * states).reshape(states, states)  # fmt: skip
        reward = np.bincount(log.state, each * log.reward, states)
        values = np.linalg.solve((1 + 1e-12) * np.eye(states) - chain, reward)
        found[draw] = times @ values[log.state[first]] / patients
    return found


def evaluate(hospital: Hospital, log: Log, task: "Task") -> dict[str, Any]:
    """Interval and mean of one method for one policy, and whatever else the posterior says of itself."""
    chosen = hospital.policy(task.policy)
    if task.method in (BOOTSTRAP, BOOTSTRAP_ZERO):
        return _interval(bootstrap_values(hospital, log, chosen, task.draws, task.log, task.method == BOOTSTRAP))
    if task.method == PROTOTYPE:
        return prototype(hospital, log, chosen, task)
    import bellief

    data = bellief.Transitions.from_arrays(
        log.state, log.action, log.reward, log.next_state, log.terminated, log.patient,
        states=SURVIVAL + 1, actions=chosen.shape[1],
    )  # fmt: skip
    ends = np.full((2, chosen.shape[1]), 1 / chosen.shape[1])
    policy = "behaviour" if task.policy == "behaviour" else np.concatenate([chosen, ends])
    found = bellief.evaluate(
        data, policy, 1.0, method=task.method, draws=task.draws, seed=task.log, level=LEVEL, **task.options
    )
    return _interval(_start_draws(found)) | {"extra": json.dumps(_told(found))}


def prototype(hospital: Hospital, log: Log, policy: np.ndarray, task: "Task") -> dict[str, Any]:
    """The model of `benchmarks/prototypes/honest.py`, with its bounds and the share that is supported."""
    sys.path.insert(0, str(Path(__file__).parent / "prototypes"))
    import honest

    states, actions = policy.shape
    first = np.flatnonzero(np.diff(log.patient, prepend=-1))
    key, times = np.unique((log.state * actions + log.action) * (SURVIVAL + 1) + log.next_state, return_counts=True)
    pair, following = np.divmod(key, SURVIVAL + 1)
    tally = honest.Tally(
        states, actions, pair // actions, pair % actions, following, following >= DEATH,
        (following == SURVIVAL).astype(float), times, np.bincount(log.state[first], minlength=states),
    )  # fmt: skip
    model = honest.prepare(tally)
    plan = honest.depart(model, policy, 1.0)
    draws, _ = honest.sample(model, plan, task.draws, task.log)
    extra = {"supported": honest.supported(model, plan, LEAST_VISITS)}
    extra["bounds"] = honest.bounds(model, plan, LEAST_VISITS, 0.0, 1.0, 20, task.log)
    return _interval(draws) | {"extra": json.dumps(extra)}


def _start_draws(posterior: Any) -> np.ndarray:
    """Draws of the value at the start; a posterior may draw the start distribution too."""
    if hasattr(posterior, "start_samples"):
        samples = posterior.start_samples
        return np.asarray(samples() if callable(samples) else samples)
    return np.asarray(posterior.samples) @ np.asarray(posterior.start)


def _interval(draws: np.ndarray) -> dict[str, Any]:
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], method="weibull")
    return {"low": low, "high": high, "mean": draws.mean()}


def _told(posterior: Any) -> dict[str, Any]:
    """What the posterior says about how far the log supports it, where it says so."""
    names = ("supported", "bounds", "cannot_tell", "warnings")
    told = {name: getattr(posterior, name, None) for name in names}
    return {name: np.asarray(one).tolist() for name, one in told.items() if one is not None and not callable(one)}


@dataclasses.dataclass(frozen=True)
class Task:
    """One evaluation."""

    dynamics: Path
    patients: int
    log: int
    policy: str
    method: str
    draws: int
    options: dict[str, Any]


def run(task: Task) -> dict[str, Any]:
    """One row of the table."""
    hospital = load(task.dynamics)
    log = make_log(hospital, task.patients, task.log)
    values = hospital.values(hospital.policy(task.policy))
    first = log.state[np.flatnonzero(np.diff(log.patient, prepend=-1))]
    row: dict[str, Any] = {"truth": float(hospital.start @ values), "truth_observed_start": float(values[first].mean())}
    began = time.perf_counter()
    try:
        row |= evaluate(hospital, log, task) | {"status": "done"}
    except Exception as error:
        row |= {"status": "error", "message": f"{type(error).__name__}: {error}"[:300]}
    row["seconds"] = time.perf_counter() - began
    if "low" in row:
        row["covered"] = int(row["low"] <= row["truth"] <= row["high"])
        row["width"], row["bias"] = row["high"] - row["low"], row["mean"] - row["truth"]
    return row


def _work(connection: Connection) -> None:
    """A worker process: one task after the other until None comes."""
    while (task := connection.recv()) is not None:
        connection.send(run(task))


class Worker:
    """A process that can be ended when its task takes too long."""

    def __init__(self) -> None:
        self.connection, there = multiprocessing.get_context("spawn").Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=_work, args=(there,), daemon=True)
        self.process.start()
        self.task: Task | None = None
        self.began = 0.0

    def give(self, task: Task | None) -> None:
        """Begin a task; None ends the process when it is idle."""
        self.task, self.began = task, time.monotonic()
        self.connection.send(task)

    def stop(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()


def run_all(tasks: list[Task], jobs: int, limit: float):
    """Yield (task, row) as tasks are done, at most `jobs` at a time, each within `limit` seconds."""
    waiting = tasks[::-1]
    workers = [Worker() for _ in range(min(jobs, len(tasks)))]
    for worker in workers:
        worker.give(waiting.pop())
    while busy := [worker for worker in workers if worker.task is not None]:
        ready = wait([worker.connection for worker in busy], timeout=0.5)
        for place, worker in enumerate(workers):
            if worker.task is None:
                continue
            if worker.connection in ready:
                yield worker.task, worker.connection.recv()
            elif time.monotonic() - worker.began > limit:
                worker.stop()
                yield worker.task, {"status": "time", "seconds": limit}
                workers[place] = worker = Worker()
            else:
                continue
            worker.give(waiting.pop() if waiting else None)


def summarise(path: Path) -> None:
    """Print coverage, median width and mean bias of every cell of a table."""
    cells: dict[tuple, list[dict[str, str]]] = {}
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            cells.setdefault((int(row["patients"]), row["policy"], row["method"]), []).append(row)
    print("patients policy method: coverage (error), median width, mean bias, median seconds")
    for (patients, policy, method), rows in sorted(cells.items()):
        done = [row for row in rows if row["status"] == "done"]
        failed = f"; {len(rows) - len(done)} of {len(rows)} without an answer" if len(done) < len(rows) else ""
        if not done:
            print(f"{patients:6d} {policy} {method}: no answer in {len(rows)} logs ({rows[0]['message'] or 'time'})")
            continue
        covered, width, bias, seconds = (
            np.array([float(row[name]) for row in done]) for name in ("covered", "width", "bias", "seconds")
        )
        share = covered.sum() / len(rows)
        error = np.sqrt(max(share * (1 - share), 1e-9) / len(rows))
        print(
            f"{patients:6d} {policy} {method}: {share:.3f} ({error:.3f}), {np.median(width):.4g}, "
            f"{bias.mean():+.4f}, {np.median(seconds):.1f} s, {len(rows)} logs{failed}"
        )


def main() -> None:
    """Evaluate all logs, row by row into a CSV file; rows that are there already are not computed again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dynamics", type=Path, help="path of dynamics.npz; by default that of the installed package")
    parser.add_argument("--patients", default="300,2000,18000")
    parser.add_argument("--policies", default="clinicians,half,optimal", help=f"some of {','.join(POLICIES)}")
    parser.add_argument("--method", default=f"joint,{BOOTSTRAP}",
                        help=f"of bellief.evaluate, {BOOTSTRAP}, {BOOTSTRAP_ZERO} or {PROTOTYPE}")  # fmt: skip
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--draws", type=int, default=99)
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE for bellief.evaluate, repeatable")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one evaluation")
    parser.add_argument("--out", type=Path, default=Path("icu-sepsis.csv"))
    parser.add_argument("--summary", action="store_true", help="only print the cells of the table that is there")
    given = parser.parse_args()
    if given.summary:
        return summarise(given.out)
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    options = dict(_option(text) for text in given.option)
    dynamics = given.dynamics or dynamics_path()
    tasks = [
        Task(dynamics, int(patients), log, policy, method, given.draws, options)
        for patients in given.patients.split(",")
        for log in range(given.first, given.first + given.logs)
        for policy in given.policies.split(",")
        for method in given.method.split(",")
    ]
    there = set()
    if given.out.exists():
        with given.out.open(newline="") as lines:
            there = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(lines)}
    tasks = [task for task in tasks if tuple(str(getattr(task, name)) for name in COLUMNS[:4]) not in there]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("a", newline="") as lines:
        table = csv.DictWriter(lines, COLUMNS)
        if not there:
            table.writeheader()
        for task, row in run_all(tasks, given.jobs, given.limit) if tasks else ():
            row = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
            table.writerow({name: getattr(task, name) for name in COLUMNS[:4]} | row)
            lines.flush()
    return summarise(given.out)


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


if __name__ == "__main__":
    main()
