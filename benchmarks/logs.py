"""Logs of Gymnasium's own environments, and of NChain, for the benchmarks of offline evaluation.

A task is an exact table, a target policy (optimal) and a behaviour policy (half the target, half uniform). A log is
made either by really stepping the Gymnasium environment or, faster, from its table, all logs side by side. Only what an
evaluation needs is kept: how often each (state, action, next state, end, reward) occurred among the first n steps, for
several n.

    python benchmarks/logs.py frozenlake-slippery --logs 200 --out logs
"""

import argparse
import dataclasses
import time
from pathlib import Path

import numpy as np

from bellief.envs import make
from bellief.envs.discrete import make_gymnasium, read_table
from bellief.mdp.bellman import policy_iteration
from bellief.mdp.tabular_mdp import Outcomes, TabularMDP

DISCOUNT = 0.99
SLIPPERY = ("frozenlake-slippery", "cliffwalking-slippery", "taxi-rainy")
DETERMINISTIC = ("frozenlake", "cliffwalking", "taxi")
GYMNASIUM = {
    "frozenlake-slippery": ("FrozenLake-v1", {"is_slippery": True}),
    "cliffwalking-slippery": ("CliffWalking-v1", {"is_slippery": True}),
    "taxi-rainy": ("Taxi-v4", {"is_rainy": True}),
    "frozenlake": ("FrozenLake-v1", {"is_slippery": False}),
    "cliffwalking": ("CliffWalking-v1", {}),
    "taxi": ("Taxi-v4", {}),
}
SIZES = {
    "frozenlake-slippery": (300, 1_000, 3_000, 10_000),
    "cliffwalking-slippery": (1_000, 3_000, 10_000, 30_000),
    "taxi-rainy": (30_000, 100_000, 300_000, 600_000),
    "frozenlake": (100, 300, 1_000, 3_000),
    "cliffwalking": (300, 1_000, 3_000, 10_000),
    "taxi": (3_000, 10_000, 30_000, 100_000),
    "nchain": (30, 100, 300, 1_000, 3_000),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Everything that is known about a problem before data: tables, policies, the truth, and which pairs matter."""

    name: str
    outcomes: Outcomes
    mdp: TabularMDP
    target: np.ndarray
    behaviour: np.ndarray
    time_limit: int | None

    @property
    def truth(self) -> float:
        """Exact value of the target policy from the start distribution."""
        rows = np.arange(len(self.target))
        chain = np.asarray(self.mdp.transition)[rows, self.target]
        reward = np.asarray(self.mdp.reward)[rows, self.target]
        return float(self.mdp.start @ np.linalg.solve(np.eye(len(rows)) - DISCOUNT * chain, reward))

    @property
    def needed(self) -> np.ndarray:
        """States that the target policy can reach from a first state."""
        chain = np.asarray(self.mdp.transition)[np.arange(len(self.target)), self.target] > 0
        reached = np.asarray(self.mdp.start) > 0
        while (reached | reached @ chain).sum() > reached.sum():
            reached = reached | reached @ chain
        return reached


def load(name: str) -> Task:
    """The task of that name; NChain's target is its forward-heavy policy made deterministic, which is optimal."""
    environment = make("nchain") if name == "nchain" else read_table(GYMNASIUM[name][0], **GYMNASIUM[name][1])
    mdp = environment.mdp(DISCOUNT)
    target = np.asarray(policy_iteration(mdp).actions)
    behaviour = 0.5 * np.eye(environment.actions)[target] + 0.5 / environment.actions
    return Task(name, environment.outcomes, mdp, target, behaviour, environment.time_limit)


@dataclasses.dataclass(frozen=True, eq=False)
class Tally:
    """Distinct transitions of the first `steps` steps of one log, and how often each occurred."""

    steps: int
    state: np.ndarray
    action: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    reward: np.ndarray
    times: np.ndarray


def tally(columns: dict[str, np.ndarray], steps: int) -> Tally:
    """Count equal rows. Columns become one number each, which is far faster to sort than rows."""
    part = {name: values[:steps] for name, values in columns.items()}
    rewards, reward_code = np.unique(part["reward"], return_inverse=True)
    sizes = (int(part["state"].max()) + 1, int(part["action"].max()) + 1, int(part["next_state"].max()) + 1, 2)
    codes = np.ravel_multi_index(
        (part["state"], part["action"], part["next_state"], part["terminated"].astype(int), reward_code),
        (*sizes, len(rewards)),
    )
    distinct, times = np.unique(codes, return_counts=True)
    state, action, next_state, terminated, code = np.unravel_index(distinct, (*sizes, len(rewards)))
    return Tally(steps, state, action, next_state, terminated.astype(bool), rewards[code], times)


def step_gymnasium(task: Task, steps: int, seed: int) -> dict[str, np.ndarray]:
    """One log of the real environment, begun again after every end and every cut by its time limit."""
    name, parameters = GYMNASIUM[task.name]
    env = make_gymnasium(name, disable_env_checker=True, **parameters)
    chosen = np.random.default_rng([seed, 1]).random(steps)
    choices = np.cumsum(task.behaviour, axis=-1).tolist()
    rows = np.zeros((steps, 5))
    state, _ = env.reset(seed=seed)
    for step, uniform in enumerate(chosen):
        action = sum(uniform >= edge for edge in choices[state][:-1])
        following, reward, terminated, truncated, _ = env.step(action)
        rows[step] = state, action, following, terminated, reward
        state = env.reset()[0] if terminated or truncated else following
    env.close()
    return _columns(rows)


def simulate(task: Task, sizes: tuple[int, ...], logs: int, seed: int) -> list[list[Tally]]:
    """Tallies of logs from the exact table, all logs a step at a time; only outcomes are counted, no rows are kept."""
    rng = np.random.default_rng([seed, 2])
    choices, cumulative = np.cumsum(task.behaviour, -1), np.cumsum(task.outcomes.probability, -1)
    start = np.cumsum(task.outcomes.start)
    counts = np.zeros((logs, cumulative.size), np.int32)
    lanes = np.arange(logs) * cumulative.size

    def first_states(count):
        return np.searchsorted(start, rng.random(count) * start[-1], side="right")

    state, age, found = first_states(logs), np.zeros(logs, int), []
    for step in range(1, sizes[-1] + 1):
        uniform = rng.random((2, logs, 1))
        action = (uniform[0] >= choices[state, :-1]).sum(-1)
        edges = cumulative[state, action]
        outcome = (uniform[1] * edges[:, -1:] >= edges).sum(-1)
        drawn = (state, action, outcome)
        counts.ravel()[lanes + np.ravel_multi_index(drawn, cumulative.shape)] += 1
        following = task.outcomes.next_state[drawn]
        age += 1
        over = task.outcomes.terminated[drawn] | (age == (task.time_limit or -1))
        state = following.copy()
        state[over], age[over] = first_states(over.sum()), 0
        if step in sizes:
            found.append([_from_counts(task, one, step) for one in counts])
    return [list(group) for group in zip(*found, strict=True)]


def _from_counts(task: Task, counts: np.ndarray, steps: int) -> Tally:
    where = np.unravel_index(np.flatnonzero(counts), task.outcomes.probability.shape)
    table = task.outcomes
    ends = (table.next_state[where], table.terminated[where], table.reward[where])
    return Tally(steps, where[0], where[1], *ends, counts[counts > 0])


def _columns(rows: np.ndarray) -> dict[str, np.ndarray]:
    state, action, next_state = (rows[:, column].astype(int) for column in range(3))
    return {
        "state": state,
        "action": action,
        "next_state": next_state,
        "terminated": rows[:, 3].astype(bool),
        "reward": rows[:, 4],
    }


def save(path: Path, tallies: list[list[Tally]]) -> None:
    """All tallies of a task in one file: one long table with the numbers of log and size."""
    fields = [field.name for field in dataclasses.fields(Tally) if field.name != "steps"]
    flat = [(log, one) for log, group in enumerate(tallies) for one in group]
    table = {name: np.concatenate([getattr(one, name) for _, one in flat]) for name in fields}
    table["log"] = np.concatenate([np.full(len(one.state), log) for log, one in flat])
    table["steps"] = np.concatenate([np.full(len(one.state), one.steps) for _, one in flat])
    np.savez_compressed(path, **table)


def read(path: Path) -> list[list[Tally]]:
    """What `save` wrote: for each log its tallies by size."""
    with np.load(path) as table:
        columns = dict(table)
    found = []
    for log in np.unique(columns["log"]):
        here = columns["log"] == log
        part = {name: values[here] for name, values in columns.items() if name != "log"}
        steps = part.pop("steps")
        found.append(
            [Tally(int(size), **{name: v[steps == size] for name, v in part.items()}) for size in np.unique(steps)]
        )
    return found


def main() -> None:
    """Make and save the logs of one task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[*SIZES])
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--simulated", action="store_true", help="from the table instead of the real environment")
    parser.add_argument("--out", type=Path, default=Path("logs"))
    options = parser.parse_args()
    task, began = load(options.task), time.perf_counter()
    sizes = SIZES[options.task]
    kind = "simulated" if options.simulated or options.task == "nchain" else "stepped"
    if kind == "simulated":
        tallies = simulate(task, sizes, options.logs, seed=0)
    else:
        stepped = (step_gymnasium(task, sizes[-1], seed) for seed in range(options.logs))
        tallies = [[tally(columns, size) for size in sizes] for columns in stepped]
    options.out.mkdir(parents=True, exist_ok=True)
    save(options.out / f"{options.task}-{kind}.npz", tallies)
    seen = np.array([[_least_visits(task, one) for one in group] for group in tallies])
    print(f"{options.task}, {kind}: {options.logs} logs in {time.perf_counter() - began:.0f} s, truth {task.truth:.4f}")
    for size, least in zip(sizes, seen.T, strict=True):
        print(f"  {size} steps: fewest visits of a needed pair, median {np.median(least):.0f}, worst {least.min()}")


def _least_visits(task: Task, one: Tally) -> int:
    visits = np.zeros(task.behaviour.shape, int)
    np.add.at(visits, (one.state, one.action), one.times)
    return int(visits[np.arange(len(task.target)), task.target][task.needed].min())


if __name__ == "__main__":
    main()
