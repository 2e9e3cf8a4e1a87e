"""Errors of the start value's mean and interval at equal processor time: plain Monte Carlo, joint, moments.

Six tasks, 5, 30 and 100 visits of every pair, and the time in which plain Monte Carlo makes 100 and 1,000 draws. Times
are processor times of everything after the belief is built (set-up, draws, summary). A repeat is one seed. The truth is
plain Monte Carlo with another seed, for the mean with the linear term as control variate. Rows are appended to the CSV
file cell by cell, and cells in it are not computed again; the report is made from it.

    python benchmarks/accuracy.py --repeats 100 --truth 100000 --out docs/results
"""

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import bellief
from bellief.evaluation.accuracy import StartDraws
from bellief.evaluation.posterior import interval
from bellief.evaluation.problem import Problem, prepare
from bellief.evaluation.value_moments import matched_draws, second_order

TASKS = ("NChain", "FrozenLake", "CliffWalking", "random 30", "random 300", "random 716, ends")
VISITS, BUDGETS, LEVEL = (5, 30, 100), (100, 1000), 0.9
NUMBERS = ("mean", "low", "high")
FIELDS = ("task", "visits", "budget", "method", "draws", "seconds", "repeats", "truth", "sd", "truth_error",
          *(f"rmse_{name}" for name in NUMBERS), *(f"told_{name}" for name in NUMBERS))  # fmt: skip


READING = (
    "Where there are few states, 100 plain draws take two or three milliseconds, and the least that joint needs (30 "
    "draws, the linear term, the closed form, the law) takes up to twice as long: see the column of times. In NChain "
    "after 5 visits and in CliffWalking rare outcomes make the law heavy-tailed: joint finds that no law that four "
    "cumulants tell has that shape, and leaves the ends to its draws, of which it affords fewer than plain Monte Carlo."
)


def table_of(task: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Transition table [S, A, S + 1] with the end as last outcome, rewards [S, A, S + 1], and a discount."""
    if task == "NChain":
        chance, reward = np.zeros((5, 2, 6)), np.zeros((5, 2, 6))
        for state in range(5):
            for action in range(2):
                forward = 0.8 if action == 0 else 0.2
                chance[state, action, min(state + 1, 4)] += forward
                chance[state, action, 0] += 1 - forward
            reward[state, :, 0] = 2.0
        reward[4, :, 4] = 10.0
        return chance, reward, 0.99
    if task.startswith("random"):
        states = int(task.split()[1].strip(","))
        random, ends = np.random.default_rng(states), 0.05 if "ends" in task else 0.0
        chance = np.zeros((states, 2, states + 1))
        for row in np.ndindex(states, 2):
            chance[row][random.choice(states, 5, replace=False)] = (1 - ends) * random.dirichlet(np.ones(5))
        chance[..., -1] = ends
        return chance, np.repeat(random.normal(size=(states, 2, 1)), states + 1, -1), 0.95
    import gymnasium

    moves = gymnasium.make(f"{task}-v1").unwrapped.P  # type: ignore[attr-defined]
    chance, reward = np.zeros((len(moves), 4, len(moves) + 1)), np.zeros((len(moves), 4, len(moves) + 1))
    for state, actions in moves.items():
        for action, outcomes in actions.items():
            for probability, following, paid, ended in outcomes:
                outcome = len(moves) if ended else following
                chance[state, action, outcome] += probability
                reward[state, action, outcome] = paid
    return chance, reward, 0.95


def make_log(task: str, visits: int) -> tuple[bellief.Transitions, float]:
    """So many visits of every pair; where rewards do not vary by themselves in random tasks, noise is added."""
    chance, reward, discount = table_of(task)
    random = np.random.default_rng(visits)
    states, actions, _ = chance.shape
    state, action = (field.ravel().repeat(visits) for field in np.mgrid[:states, :actions])
    upto = chance.cumsum(-1)[state, action]
    outcome = (random.random((len(state), 1)) * upto[:, -1:] > upto).sum(-1)
    paid = reward[state, action, outcome] + (0.3 * random.normal(size=len(state)) if "random" in task else 0.0)
    ended = outcome == states
    following = np.where(ended, state, outcome)
    log = bellief.Transitions.from_arrays(state, action, paid, following, terminated=ended if ended.any() else None)
    return log, discount


def sampled(problem: Problem, policy: np.ndarray, seed: int, draws: int, helped: bool):
    """Mean, interval and their errors as told, from so many draws."""
    drawn = StartDraws(problem, policy[None], seed, None, helped=helped)
    drawn.extend(draws)
    start, linear = drawn.start()
    law = drawn.laws(start, linear, np.ones((1, 1)))[0] if helped else None
    points = start[:, 0] if law is None else law.points
    tail = (1 - LEVEL) / 2
    told = [np.nan] * 3 if law is None else [law.mean_error, law.error_at(tail), law.error_at(1 - tail)]
    return [points.mean(), *interval(points, LEVEL)], told


def processor_time(task: Callable[[], object], repeats: int = 3) -> float:
    """Median over some repeats."""
    taken = []
    for _ in range(repeats):
        begun = time.process_time()
        task()
        taken.append(time.process_time() - begun)
    return float(np.median(taken))


def affordable(problem: Problem, policy: np.ndarray, budget: float, most: int) -> int:
    """Helped draws that take as long as the budget; at least what a law needs."""
    few, many = max(30, most // 5), most
    short, long = (processor_time(lambda n=n: sampled(problem, policy, 0, n, True)) for n in (few, many))
    each = max((long - short) / max(many - few, 1), 1e-9)
    return int(np.clip(many + (budget - long) / each, 30, 2 * most))


def measure(task: str, visits: int, repeats: int, truth_draws: int, budgets: tuple[int, ...]) -> list[dict]:
    """All methods on one cell."""
    log, discount = make_log(task, visits)
    problem = prepare(log, discount)
    states, actions = problem.log.states, problem.log.actions
    policy = np.full((states, actions), 1 / actions)
    drawn = StartDraws(problem, policy[None], 10**6, None, helped=True)
    drawn.extend(truth_draws)
    truth_values, linear = (field[:, 0] for field in drawn.start())
    # The linear term has mean zero: a control variate, without bias, for the mean. The ends are counted.
    slope = np.cov(truth_values, linear)[0, 1] / linear.var()
    truth = np.array([truth_values.mean() - slope * linear.mean(), *interval(truth_values, LEVEL)])
    sd = float(truth_values.std())
    cell = {"task": task, "visits": visits, "repeats": repeats, "truth": truth_draws, "sd": sd}
    cell["truth_error"] = 2.1 * sd / np.sqrt(truth_draws)  # of an end, as for a normal law
    rows = []
    for budget in budgets:
        plain_time = processor_time(lambda b=budget: sampled(problem, policy, 0, b, False))
        number = affordable(problem, policy, plain_time, budget)
        for method, draws, helped in (("plain", budget, False), ("joint", number, True)):
            begun = time.process_time()
            found = [sampled(problem, policy, seed, draws, helped) for seed in range(repeats)]
            taken = (time.process_time() - begun) / repeats
            rows.append(row_of(cell, budget, method, draws, taken, truth, sd, found))
    begun = time.process_time()
    moments = second_order(problem, policy)
    taken = time.process_time() - begun
    points = matched_draws(moments, 0, 4000)[:, -1]
    found = [([moments.mean[-1], *interval(points, LEVEL)], [np.nan] * 3)]
    one = row_of(cell, 0, "moments", 0, taken, truth, sd, found)
    solve = processor_time(lambda: np.linalg.solve(np.eye(states) + 1e-3, np.ones(states)))
    rows.append(one | {"repeats": taken / solve, "told_mean": moments.sd[-1] / sd})
    return rows


def row_of(cell: dict, budget: int, method: str, draws: int, seconds: float, truth, sd: float, found) -> dict:
    """Errors in standard deviations of the posterior."""
    values, told = (np.array([one[part] for one in found]) for part in (0, 1))
    error = np.sqrt(((values - truth) ** 2).mean(0)) / sd
    row = cell | {"budget": budget, "method": method, "draws": draws, "seconds": seconds}
    row |= {f"rmse_{name}": one for name, one in zip(NUMBERS, error, strict=True)}
    return row | {f"told_{name}": one for name, one in zip(NUMBERS, told.mean(0) / sd, strict=True)}


def main() -> None:
    """Measure what is missing, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--truth", type=int, default=100_000)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--budgets", type=int, nargs="*", default=list(BUDGETS))
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    path = options.out / "accuracy.csv"
    known = set()
    if path.exists():
        known = {(row["task"], row["visits"]) for row in csv.DictReader(path.open())}
    for task in options.tasks:
        for visits in VISITS:
            if (task, str(visits)) in known:
                continue
            rows = measure(task, visits, options.repeats, options.truth, tuple(options.budgets))
            begins = not path.exists()
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                if begins:
                    writer.writeheader()
                writer.writerows(rows)
            print(f"{task}, {visits} visits done", flush=True)
    (options.out / "accuracy.md").write_text(markdown(pd.read_csv(path)))


def markdown(frame: pd.DataFrame) -> str:
    """Errors of plain Monte Carlo, ratios of joint to it, and what moments is off by."""
    lines = [
        "# Accuracy at equal processor time",
        "",
        "Root mean square errors of the start value's mean and of the ends of its 90% interval. Plain Monte Carlo: in "
        "standard deviations of the posterior. joint: as a share of plain Monte Carlo's, with as many draws (at least "
        "30) as take the processor time in which plain Monte Carlo makes 100 or 1,000, set-up and summary included. "
        "The truth is plain Monte Carlo with another seed, for the mean with the linear term as control variate; its "
        "own error is part of all errors, so that small shares are upper bounds. Command: "
        "`python benchmarks/accuracy.py`; repeats and the truth's draws as given in each line. See "
        "[the mathematics](../accuracy.md).",
    ]
    cells = len(frame[["task", "visits"]].drop_duplicates())
    whole = len(TASKS) * len(VISITS)
    ran = "" if cells == whole else f"Run so far: {cells} of {whole} cells. "
    lines += ["", ran + READING]
    for budget in sorted(set(frame["budget"]) - {0}):
        lines += ["", f"## The time of {budget:,} plain draws", ""]
        head = (
            "| task | visits | repeats | truth's draws (error of an end) | plain: mean, ends | joint: draws, time | "
            "joint / plain: mean, ends | error told / found: mean, ends |"
        )
        lines += [head, "|---|---|---|---|---|---|---|---|"]
        part = frame[frame["budget"] == budget]
        for (task, visits), cell in part.groupby(["task", "visits"], sort=False):
            plain, joint = (cell[cell["method"] == name].iloc[0] for name in ("plain", "joint"))
            errors, better, told = (
                [one[f"{kind}_{name}"] for name in NUMBERS]
                for one, kind in ((plain, "rmse"), (joint, "rmse"), (joint, "told"))
            )
            ratio = [f"{b / a:.2f}" for a, b in zip(errors, better, strict=True)]
            honest = [f"{b / a:.2f}" for a, b in zip(better, told, strict=True)]
            lines.append(
                f"| {task} | {visits} | {int(plain['repeats'])} | {int(plain['truth']):,} "
                f"({plain['truth_error'] / plain['sd']:.3f}) | {', '.join(f'{e:.3f}' for e in errors)} | "
                f"{int(joint['draws'])}, {joint['seconds'] / plain['seconds']:.2f} | {', '.join(ratio)} | "
                f"{', '.join(honest)} |"
            )
        wins = _wins(part)
        said = f"the mean's error is at most a fifth in {wins[0]}, both ends' at most a third in {wins[1]}."
        lines += ["", f"Of {wins[2]} cells, {said}"]
    head = "| task | visits | error of the mean, low, high (in sd) | sd / true sd | time in dense solves |"
    lines += ["", "## moments", "", head, "|---|---|---|---|---|"]
    for _, row in frame[frame["method"] == "moments"].iterrows():
        errors = ", ".join(f"{row[f'rmse_{name}']:.3f}" for name in NUMBERS)
        lines.append(f"| {row['task']} | {row['visits']} | {errors} | {row['told_mean']:.3f} | {row['repeats']:.1f} |")
    return "\n".join(lines) + "\n"


def _wins(part: pd.DataFrame) -> tuple[int, int, int]:
    errors = [f"rmse_{name}" for name in NUMBERS]
    plain, joint = (part[part["method"] == name].set_index(["task", "visits"])[errors] for name in ("plain", "joint"))
    ratio = joint / plain
    ends = ratio[["rmse_low", "rmse_high"]].max(axis=1)
    return int((ratio["rmse_mean"] <= 0.2).sum()), int((ends <= 1 / 3).sum()), len(ratio)


if __name__ == "__main__":
    main()
