"""The exact Bayes-optimal value of a small problem, bounds on it, and what agents earn: docs/bayes-optimal.md.

python benchmarks/bayes_optimal.py --out docs/results/bayes-optimal.csv --picture docs/images/bayes-optimal.png
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from bellief.experiments.bayesian import bayesian_returns
from bellief.induction import bayes_optimal as exact
from bellief.plots import style

# In the first state the first action pays a little; the second state pays more, whatever is done there.
REWARD = ((0.4, 0.0), (1.0, 1.0))
# `bbi` (ours) learns prior and rewards; agents with the paper's beliefs are told them.
AGENTS = {
    "BBI": ("bbi-paper", {"horizon": 30}),
    "BBI, optimistic": ("bbi-paper", {"rule": "optimistic", "horizon": 30}),
    "MMBI": ("mmbi", {"horizon": 30}),
    "PSRL": ("psrl-paper", {}),
    "BSS": ("bss", {}),
    "BQL": ("bql", {}),
    "Q-learning": ("q-learning", {}),
    "BBI (ours)": ("bbi", {}),
}
# As the paper's footnote has it for short problems: the agent looks ahead to the end, so every horizon is a run apart.
TO_THE_END, ENDS = "BBI, H = T - t", (4, 8, 16)
COLOURS = {"BBI (ours)": "bbi-own", "BBI, optimistic": "bbi-own", TO_THE_END: "bbi"}
DASHED = ("BBI, optimistic", TO_THE_END)


def problem_of():
    """Two states, two actions."""
    return exact.from_rewards(REWARD, concentration=0.5, discount=0.95)


def bounds_of(horizon, mdps, tell):
    """Name, horizon, value, standard error (zero where exact) of the optimum and what bounds it."""
    problem = problem_of()
    began = time.perf_counter()
    optimum = exact.values_by_horizon(problem, horizon)
    beliefs = exact.solve(problem, horizon).information_states.sum()
    tell(f"exact: {time.perf_counter() - began:.1f} s, {beliefs:,} information states")
    rows = [("Bayes-optimal", steps, value, 0.0) for steps, value in enumerate(optimum, 1)]
    for steps in range(1, horizon + 1):
        bound = exact.hindsight_bound(problem, steps, mdps, seed=0)
        rows.append(("hindsight (upper bound)", steps, bound.value, bound.standard_error))
        blind = exact.evaluate(problem, steps, exact.mean_mdp_policy(problem, steps))
        rows.append(("mean MDP's policy", steps, blind, 0.0))
        learning = exact.evaluate(problem, steps, exact.certainty_equivalent(problem))
        rows.append(("mean MDP's policy, replanned", steps, learning, 0.0))
    return rows


def agents_of(labels, horizon, runs, tell):
    """The same of agents."""
    problem, rows = problem_of(), []
    for label, (agent, settings) in AGENTS.items():
        if label not in labels:
            continue
        began = time.perf_counter()
        found = bayesian_returns(problem, agent, horizon, runs, settings)
        tell(f"{label}: {time.perf_counter() - began:.1f} s")
        rows += [(label, steps, *adjusted(problem, found[:, steps - 1], steps)) for steps in range(1, horizon + 1)]
    if TO_THE_END in labels:
        for steps in (end for end in ENDS if end <= horizon):
            began = time.perf_counter()
            found = bayesian_returns(problem, "bbi-paper", steps, runs, {"lifetime": steps})
            tell(f"{TO_THE_END}, T = {steps}: {time.perf_counter() - began:.1f} s")
            rows.append((TO_THE_END, steps, *adjusted(problem, found[:, -1], steps)))
    return rows


def adjusted(problem, returns, steps):
    """Mean return and its standard error, with the optimal value of each run's MDP as a control variate: a run in a
    lucky MDP says little about the agent. Its mean is known much better, from many more MDPs.
    """
    runs = len(returns)
    control = exact.backward_induction(problem, exact.draw_mdps(problem, runs, 0), steps)[0][:, 0]
    known = exact.hindsight_bound(problem, steps, 200_000, seed=1)
    slope = np.cov(returns, control)[0, 1] / control.var(ddof=1)
    left = returns - slope * (control - known.value)
    return left.mean(), np.hypot(left.std(ddof=1) / np.sqrt(runs), slope * known.standard_error)


def draw(rows, path):
    """Left: value as a share of the Bayes-optimal one. Right: Bayesian regret of agents, with two standard errors."""
    names = list(dict.fromkeys(row[0] for row in rows))
    table = {name: np.array([row[1:] for row in rows if row[0] == name], float) for name in names}
    exact_values = table["Bayes-optimal"][:, 1]
    figure = style.new_figure(10.0, 4.6)
    left, right = figure.subplots(1, 2)
    dashes = {"Bayes-optimal": "-", "hindsight (upper bound)": (0, (1.2, 1.2)), "mean MDP's policy": (0, (5, 2))}
    for name in names:
        steps, value, error = table[name].T
        optimum = exact_values[steps.astype(int) - 1]
        playing = name in (*AGENTS, TO_THE_END)
        colour = style.colour_of(COLOURS.get(name, name)) if playing else style.INK
        line = dashes.get(name, "-" if playing and name not in DASHED else (0, (2, 1)))
        left.plot(steps, value / optimum, color=colour, linestyle=line, linewidth=1.6, label=name)
        if playing:
            low, high = (optimum - value - 2 * error), (optimum - value + 2 * error)
            right.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
            right.plot(steps, optimum - value, color=colour, linestyle=line, linewidth=1.6, label=name)
    right.axhline(0.0, color=style.INK, linewidth=1.0)
    left.set_ylabel("Bayesian value / Bayes-optimal value")
    right.set_ylabel("Bayesian regret (discounted reward)")
    for axes in (left, right):
        style.tidy(axes)
        axes.set_xlabel("horizon (steps)")
    left.set_ylim(0.75, 1.12)
    handles, labels = left.get_legend_handles_labels()
    options = {"frameon": False, "fontsize": style.FONT_SIZE - 1.5, "labelcolor": style.INK, "ncols": 6}
    figure.legend(handles, labels, loc="outside upper left", **options)
    path.write_bytes(style.to_bytes(figure, "png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3_000)
    parser.add_argument("--mdps", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--agents", help="labels with ; between them: compute these again, keep --out's other rows")
    parser.add_argument("--draw-only", action="store_true", help="draw the numbers of --out again")
    given = parser.parse_args()
    labels = [label.strip() for label in given.agents.split(";")] if given.agents else [*AGENTS, TO_THE_END]
    if unknown := set(labels) - {*AGENTS, TO_THE_END}:
        parser.error(f"there is no agent {', '.join(sorted(unknown))}")

    def tell(text):
        print(text, flush=True)

    rows = []
    if given.draw_only or given.agents:
        with given.out.open() as file:
            rows = [(row[0], int(row[1]), float(row[2]), float(row[3])) for row in list(csv.reader(file))[1:]]
    else:
        rows = bounds_of(given.horizon, given.mdps, tell)
    if not given.draw_only:
        rows = [row for row in rows if row[0] not in labels] + agents_of(labels, given.horizon, given.runs, tell)
    if given.out and not given.draw_only:
        with given.out.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["name", "horizon", "value", "standard_error"])
            writer.writerows([name, steps, f"{value:.6g}", f"{error:.3g}"] for name, steps, value, error in rows)
    if given.picture:
        draw(rows, given.picture)
    for name in dict.fromkeys(row[0] for row in rows):
        _, steps, value, error = [row for row in rows if row[0] == name][-1]
        print(f"{name:30} H = {steps}: {value:.4f} ({error:.4f})")


if __name__ == "__main__":
    main()
