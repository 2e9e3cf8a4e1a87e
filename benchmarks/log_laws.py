"""Are logs made from an environment's table of the same law as logs stepped in the real Gymnasium environment?

Three tests for each task: outcomes of every state-action pair against the table, actions against the behaviour policy
(both chi-square, all stepped logs pooled), and how often each state is visited in stepped and in simulated logs (the
largest Welch statistic over states, corrected for their number).

    python benchmarks/log_laws.py frozenlake-slippery --logs 200 --steps 3000 --logs-folder logs
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats

from logs import Tally, Task, load, read, simulate, step_gymnasium, tally


def counts(task: Task, log: Tally) -> np.ndarray:
    """How often each pair led to each outcome of its row in the table; outcomes that look the same are one."""
    table, times = task.outcomes, np.zeros(task.outcomes.probability.shape)
    for row in zip(log.state, log.action, log.next_state, log.terminated, log.reward, log.times, strict=True):
        state, action, following, ended, reward, number = row
        same = (table.next_state[state, action] == following) & (table.terminated[state, action] == ended)
        same &= np.isclose(table.reward[state, action], reward) & (table.probability[state, action] > 0)
        assert same.any(), "an outcome that the table does not know"
        times[state, action, np.argmax(same)] += number
    return times


def expected(task: Task) -> np.ndarray:
    """The table's probabilities with equal outcomes of a row put together in the first of them."""
    table, merged = task.outcomes, np.zeros(task.outcomes.probability.shape)
    states, actions, size = merged.shape
    for state, action, place in np.ndindex(states, actions, size):
        if table.probability[state, action, place] > 0:
            same = (table.next_state[state, action] == table.next_state[state, action, place]) & (
                table.terminated[state, action] == table.terminated[state, action, place]
            )
            same &= np.isclose(table.reward[state, action], table.reward[state, action, place])
            same &= table.probability[state, action] > 0
            merged[state, action, np.argmax(same)] += table.probability[state, action, place]
    return merged


def chi_square(observed: np.ndarray, chances: np.ndarray) -> float:
    """p value over all rows (the last axis) in which at least two cells are expected five times."""
    total = observed.sum(-1, keepdims=True)
    wanted = chances * total
    used = wanted >= 5
    rows = used.sum(-1) >= 2
    # What lies outside the used cells is left out, and the rest scaled to it.
    share = np.where(used, chances, 0)
    share = share / np.maximum(share.sum(-1, keepdims=True), 1e-300)
    seen = np.where(used, observed, 0)
    wanted = share * seen.sum(-1, keepdims=True)
    terms = np.divide((seen - wanted) ** 2, wanted, out=np.zeros_like(seen), where=used & (wanted > 0))
    return float(stats.chi2.sf(terms[rows].sum(), (used.sum(-1) - 1)[rows].sum()))


def main() -> None:
    """One line for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--logs", type=int, default=50)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--logs-folder", type=Path, help="stepped logs that benchmarks/logs.py made")
    options = parser.parse_args()
    for name in options.tasks:
        task = load(name)
        if options.logs_folder is None:
            columns = (step_gymnasium(task, options.steps, seed) for seed in range(options.logs))
            tallies = [tally(one, options.steps) for one in columns]
        else:
            groups = read(options.logs_folder / f"{name}-stepped.npz")[: options.logs]
            tallies = [one for group in groups for one in group if one.steps == options.steps]
        stepped = np.stack([counts(task, one) for one in tallies])
        made = simulate(task, (options.steps,), options.logs, seed=1)
        simulated = np.stack([counts(task, group[0]) for group in made])
        by_state = [logs.sum((2, 3)) for logs in (stepped, simulated)]
        seen = (by_state[0].std(0) > 0) & (by_state[1].std(0) > 0)
        pairs = stats.ttest_ind(by_state[0][:, seen], by_state[1][:, seen], equal_var=False).pvalue
        print(
            f"{name}, {options.logs} logs of {options.steps} steps: outcomes p = "
            f"{chi_square(stepped.sum(0), expected(task)):.2g}, actions p = "
            f"{chi_square(stepped.sum((0, 3)), task.behaviour):.2g}, visits of {seen.sum()} states p = "
            f"{min(1, float(pairs.min()) * seen.sum()):.2g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
