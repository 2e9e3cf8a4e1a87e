"""Do 90% intervals hold the exact value when nothing comes from the prior? Logs of Gymnasium's environments say.

Reads the tallies that benchmarks/logs.py wrote, evaluates the target policy from each of them under several priors and
by bootstrap fitted-Q evaluation, and writes one row per log, size and method. `benchmarks/coverage_page.py` turns the
rows into pages and pictures.

    python benchmarks/coverage.py frozenlake-slippery --logs-folder logs --out docs/results/coverage.csv.gz
"""

import argparse
import functools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from bootstrap import bootstrap_values

from bellief.beliefs import outcomes, tabular
from bellief.evaluation.dense_belief import belief_from, sample_mdp
from bellief.evaluation.logged_prior import even_prior
from bellief.induction import monte_carlo
from bellief.logs import LogStatistics
from logs import DISCOUNT, SIZES, Tally, Task, load, read, step_gymnasium, tally

LEVEL = 0.9
PRIORS = {
    "logged": even_prior,
    "logged, rows weigh 0.3": functools.partial(even_prior, row_weight=0.3),
    "logged, rows weigh 1": functools.partial(even_prior, row_weight=1.0),
    "sparse": lambda data: tabular.SPARSE_PRIOR,
    "paper": lambda data: tabular.PAPER_PRIOR,
}
BOOTSTRAP = "bootstrap"


def statistics(task: Task, log: Tally) -> LogStatistics:
    """What a belief learns from the transitions of a tally; nothing is expanded, however often each occurred."""
    states, actions = task.behaviour.shape
    pair = log.state * actions + log.action
    cell = _moments((pair * 2 + log.terminated) * states + log.next_state, log)
    cell_pair, cell_next = np.divmod(cell[0], states)
    cell_pair, cell_terminated = np.divmod(cell_pair, 2)
    # Only the start value is asked for, with the true start distribution: where episodes began does not matter.
    return LogStatistics(
        states,
        actions,
        *np.divmod(cell_pair, actions),
        cell_next,
        cell_terminated.astype(bool),
        *cell[1:],
        start_count=np.eye(1, states, dtype=int)[0],
    )


def _moments(keys: np.ndarray, log: Tally) -> tuple[np.ndarray, ...]:
    """Distinct keys with number, mean, sum of squared deviations, smallest and largest of their rewards."""
    key, place = np.unique(keys, return_inverse=True)
    number = np.bincount(place, log.times).astype(int)
    mean = np.bincount(place, log.times * log.reward) / number
    squares = np.bincount(place, log.times * (log.reward - mean[place]) ** 2)
    low, high = np.full(len(key), np.inf), np.full(len(key), -np.inf)
    np.minimum.at(low, place, log.reward)
    np.maximum.at(high, place, log.reward)
    return key, number, mean, squares, low, high


@functools.partial(jax.jit, static_argnames=("draws", "prior", "support"))
def posterior_values(keys, beliefs, start, *, draws, prior, support):
    """Start values in `draws` sampled MDPs for each belief along the leading axis, one belief at a time."""
    policy = jnp.ones((start.shape[0], 1))

    def one_log(inputs):
        key, belief = inputs

        def draw(one):
            return sample_mdp(one, prior, belief, DISCOUNT, support)

        return monte_carlo.values(key, draws, draw, policy) @ start

    return jax.lax.map(one_log, (keys, beliefs))


def by_posterior(task: Task, tallies: list[Tally], name: str, draws: int) -> tuple[np.ndarray, float]:
    """Draws of the start value for every log, and processor seconds per log (compilation left out)."""
    actions, terminates = jnp.asarray(task.target), bool(task.outcomes.terminated.any())
    beliefs = []
    for log in tallies:
        data = statistics(task, log)
        prior = PRIORS[name](data)
        beliefs.append(tabular.restrict(belief_from(data, prior, terminates), actions))
    support = max(int((np.asarray(belief.counts) > 0).sum(-1).max()) for belief in beliefs)
    static = tabular.Prior(sparse=prior.sparse, row_weight=prior.row_weight)
    assert isinstance(beliefs[0], outcomes.OutcomeBelief) or static == prior
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *beliefs)
    keys = jax.random.split(jax.random.key(0), len(tallies))
    start = jnp.asarray(task.mdp.start)
    compiled = posterior_values.lower(
        keys, stacked, start, draws=draws, prior=static, support=1 << support.bit_length()
    ).compile()
    began = time.process_time()
    values = np.asarray(compiled(keys, stacked, start))
    return values, (time.process_time() - began) / len(tallies)


def by_bootstrap(task: Task, tallies: list[Tally], draws: int) -> tuple[np.ndarray, float]:
    """The same for the bootstrap."""
    rng, began = np.random.default_rng(0), time.process_time()
    values = np.stack([bootstrap_values(task, log, draws, rng) for log in tallies])
    return values, (time.process_time() - began) / len(tallies)


def fewest_visits(task: Task, log: Tally) -> int:
    """Visits of the least visited pair that the target policy needs."""
    visits = np.zeros(task.behaviour.shape, int)
    np.add.at(visits, (log.state, log.action), log.times)
    return int(visits[np.arange(len(task.target)), task.target][task.needed].min())


def measure(task: Task, tallies: list[Tally], name: str, draws: int, kind: str) -> pd.DataFrame:
    """One row per log: the interval, whether it holds the truth, and how well the log covers the policy."""
    values, seconds = (
        by_bootstrap(task, tallies, draws) if name == BOOTSTRAP else by_posterior(task, tallies, name, draws)
    )
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail], axis=1, method="weibull")
    return pd.DataFrame(
        {
            "task": task.name,
            "logs": kind,
            "steps": tallies[0].steps,
            "method": name,
            "log": np.arange(len(tallies)),
            "fewest_visits": [fewest_visits(task, log) for log in tallies],
            "low": low,
            "high": high,
            "mean": values.mean(1),
            "truth": task.truth,
            "seconds": seconds,
        }
    )


def main() -> None:
    """Measure one task and add its rows to the table, in place of older ones of the same kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--kind", default="stepped", choices=["stepped", "simulated"])
    parser.add_argument("--logs-folder", type=Path, default=Path("logs"))
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--step", action="store_true", help="make the logs now, instead of reading them")
    parser.add_argument("--sizes", type=int, nargs="*", help="only these numbers of steps")
    parser.add_argument("--draws", type=int, default=199)
    parser.add_argument("--methods", nargs="*", default=[*PRIORS, BOOTSTRAP])
    parser.add_argument("--out", type=Path, default=Path("docs/results/coverage.csv.gz"))
    options = parser.parse_args()
    task = load(options.task)
    chosen = range(options.first, options.first + options.logs)
    if options.step:
        sizes = SIZES[options.task]
        stepped = (step_gymnasium(task, sizes[-1], seed) for seed in chosen)
        tallies = [[tally(columns, size) for size in sizes] for columns in stepped]
    else:
        tallies = read(options.logs_folder / f"{options.task}-{options.kind}.npz")[chosen.start : chosen.stop]
    by_size = [group for group in zip(*tallies, strict=True) if group[0].steps in (options.sizes or [group[0].steps])]
    found, kept = [], None
    if options.out.exists():
        old = pd.read_csv(options.out)
        kept = old[~((old.task == options.task) & (old.logs == options.kind) & old.method.isin(options.methods))]
    with jax.enable_x64(True):
        for group in by_size:
            for method in options.methods:
                rows = measure(task, list(group), method, options.draws, options.kind)
                rows["log"] += options.first
                held = ((rows.low <= rows.truth) & (rows.truth <= rows.high)).mean()
                width = (rows.high - rows.low).median()
                print(
                    f"{task.name} {group[0].steps} {method}: {held:.3f} of {len(rows)}, width {width:.4g}, "
                    f"{rows.seconds[0]:.3g} s a log",
                    flush=True,
                )
                found.append(rows)
                save(options, pd.concat(found), kept)


def save(options: argparse.Namespace, table: pd.DataFrame, kept: pd.DataFrame | None) -> None:
    """Write what there is so far, beside the rows of other tasks."""
    table = table if kept is None else pd.concat([kept, table])
    table.to_csv(options.out, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
