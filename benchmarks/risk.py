"""What acting on the lower tail gives: plans of the `mean` and the `cautious` rule from the same logs, each evaluated
over fresh MDPs from the posterior and in the true one. For docs/risk.md.

python benchmarks/risk.py --out docs/results/risk.csv --picture docs/images/risk.png
"""

import argparse
import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bellief.agents import bbi_sampled
from bellief.beliefs import tabular
from bellief.envs import make
from bellief.mdp import bellman
from bellief.plots import style
from bellief.types import Transition

TASKS = {"nchain": (50, 200, 1_000), "doubleloop": (50, 200, 1_000), "lavalake": (500, 2_000, 10_000)}
RULES = {"mean": {}, "cautious": {"tail": 0.25}}
TAIL, DISCOUNT = 0.1, 0.99


def random_log(environment, steps, seed):
    """Transitions of uniformly random actions."""
    rng, outcomes = np.random.default_rng(seed), environment.outcomes
    state, rows = 0, []
    for _ in range(steps):
        action = int(rng.integers(environment.actions))
        chances = np.asarray(outcomes.probability[state, action], float)
        outcome = int(rng.choice(len(chances), p=chances / chances.sum()))
        ended = bool(outcomes.terminated[state, action, outcome])
        following = int(outcomes.next_state[state, action, outcome])
        rows.append((state, action, np.float32(outcomes.reward[state, action, outcome]), following, ended))
        state = 0 if ended else following
    return Transition(*(np.array(column) for column in zip(*rows, strict=True)))


def makers(environment, mdps, judges):
    """Compiled: a plan from a belief by each rule, and the values of its policy over MDPs from the posterior."""
    spaces = environment.spaces()

    def plan_with(config):
        def plan(key, belief):
            state = bbi_sampled.init(key, config, spaces)._replace(belief=belief)
            return bbi_sampled.policy(config, bbi_sampled.plan(key, config, spaces, state)[0])

        return jax.jit(plan)

    configs = {
        name: bbi_sampled.Config(values="joint", rule=name, mdps=mdps, horizon=100, discount=DISCOUNT, **more)
        for name, more in RULES.items()
    }

    def judge(key, belief, policy):
        def one(draw):
            return bellman.evaluate_exact(tabular.sample(draw, tabular.PAPER_PRIOR, belief, DISCOUNT), policy)[0]

        return jax.lax.map(one, jax.random.split(key, judges))

    return {name: plan_with(config) for name, config in configs.items()}, jax.jit(judge)


def rows_of(data_sets, mdps, judges):
    for task, sizes in TASKS.items():
        environment = make(task)
        plans, judge = makers(environment, mdps, judges)
        truth = jax.tree.map(jnp.asarray, environment.mdp(DISCOUNT))
        for steps in sizes:
            for number in range(data_sets):
                belief = tabular.init(environment.states, environment.actions, environment.spaces().terminates)
                belief = tabular.update_batch(belief, random_log(environment, steps, number))
                for rule, plan in plans.items():
                    policy = plan(jax.random.key(number), belief)
                    values = np.sort(np.asarray(judge(jax.random.key(10**6 + number), belief, policy), np.float64))
                    tail = values[: max(1, int(TAIL * judges))].mean()
                    true = float(bellman.evaluate_exact(truth, policy.astype(truth.reward.dtype))[0])
                    yield task, steps, number, rule, values.mean(), tail, true
        print(task, "done", flush=True)


def differences(rows):
    """Cautious less mean, for each task and size: the posterior's mean, its lower tail, the true value."""
    table = {row[:4]: np.array(row[4:]) for row in rows}
    for task, sizes in TASKS.items():
        for steps in sizes:
            gaps = np.array(
                [
                    table[task, steps, number, "cautious"] - table[task, steps, number, "mean"]
                    for number in {key[2] for key in table if key[:2] == (task, steps)}
                ]
            )
            yield task, steps, gaps.mean(0), gaps.std(0, ddof=1) / np.sqrt(len(gaps))


def draw(rows):
    figure = style.new_figure(9.6, 3.4)
    panels = figure.subplots(1, len(TASKS))
    for axes, task in zip(panels, TASKS, strict=True):
        found = [one for one in differences(rows) if one[0] == task]
        places = np.arange(len(found))
        for shift, (column, label) in enumerate(
            ((0, "posterior mean"), (1, f"worst {TAIL:.0%} of the posterior"), (2, "true value"))
        ):
            height = [one[2][column] for one in found]
            error = [2 * one[3][column] for one in found]
            colour = ("#8a8a8a", "#0072B2", "#D55E00")[shift]
            axes.bar(places + 0.27 * (shift - 1), height, 0.25, yerr=error, color=colour, label=label, ecolor=style.INK)
        style.tidy(axes)
        axes.axhline(0.0, color=style.INK, linewidth=0.8)
        axes.set_xticks(places, [f"{one[1]:,}" for one in found])
        axes.set_xlabel("transitions in the log")
        axes.set_title(task, size=style.FONT_SIZE, color=style.INK, loc="left")
    panels[0].set_ylabel("value, cautious less mean")
    handles, labels = panels[0].get_legend_handles_labels()
    options = {"frameon": False, "fontsize": style.FONT_SIZE - 1, "labelcolor": style.INK, "ncols": 3}
    figure.legend(handles, labels, loc="outside upper left", **options)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=12)
    parser.add_argument("--mdps", type=int, default=40)
    parser.add_argument("--judges", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--picture", type=Path, required=True)
    given = parser.parse_args()
    rows = list(rows_of(given.data_sets, given.mdps, given.judges))
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "transitions", "data_set", "rule", "posterior_mean", "lower_tail", "true_value"])
        writer.writerows([*row[:4], *(f"{value:.4f}" for value in row[4:])] for row in rows)
    given.picture.write_bytes(style.to_bytes(draw(rows), "png"))
    for task, steps, gap, error in differences(rows):
        told = ", ".join(f"{one:+.2f} ({two:.2f})" for one, two in zip(gap, error, strict=True))
        print(f"{task}, {steps:,} transitions: posterior mean, lower tail, true value: {told}")


if __name__ == "__main__":
    main()
