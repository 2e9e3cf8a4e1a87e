"""How much of the true spread survives the induction, by the number of groups of MDPs: for docs/collapse.md.

python benchmarks/collapse.py --out docs/results/collapse.csv --picture docs/images/collapse.png
"""

import argparse
import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bellief.induction import grouped
from bellief.paper.computations import READINGS, SIZES, data_set
from bellief.paper.identities import drawn
from bellief.plots import style
from bellief.values import grouped_values as values

HORIZON = 500
COUNTS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 400)


_by_groups = jax.jit(grouped.by_groups, static_argnums=(2, 3))


def shares(mdps, policy, rng):
    """Spread of the start state's value over that of as many groups as MDPs, grouped by value and at random."""
    number = mdps.reward.shape[0]
    shuffled = jnp.asarray(rng.permutation(number))
    truth = float(values.sd(_by_groups(mdps, policy, HORIZON, number))[0])
    for count in COUNTS:
        if count <= number:
            by_value = _by_groups(mdps, policy, HORIZON, count)
            at_random = _by_groups(mdps, policy, HORIZON, count, shuffled * count // number)
            yield count, float(values.sd(by_value)[0]) / truth, float(values.sd(at_random)[0]) / truth


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mdps", type=int, default=400)
    parser.add_argument("--data-sets", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--picture", type=Path, required=True)
    parser.add_argument("--draw-only", action="store_true", help="draw the numbers of --out again")
    given = parser.parse_args()
    if given.draw_only:
        with given.out.open() as file:
            told = list(csv.reader(file))[1:]
        rows = [(row[0], *map(int, row[1:4]), *map(float, row[4:])) for row in told]
        given.picture.write_bytes(style.to_bytes(draw(rows), "png"))
        return
    rows = []
    with jax.enable_x64(True):
        for reading, policy in READINGS.items():
            for steps in SIZES:
                for number in range(given.data_sets):
                    mdps = jax.tree.map(
                        lambda leaf: jnp.asarray(leaf, float),
                        drawn(data_set(reading, steps, number), given.mdps, number),
                    )
                    rng = np.random.default_rng(number)
                    found = shares(mdps, jnp.asarray(np.tile(policy, (5, 1))), rng)
                    rows += [(reading, steps, number, *one) for one in found]
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "steps", "data_set", "groups", "share_by_value", "share_at_random"])
        writer.writerows([*row[:4], *(f"{value:.4f}" for value in row[4:])] for row in rows)
    given.picture.write_bytes(style.to_bytes(draw(rows), "png"))
    for count in COUNTS:
        some = np.array([row[4:] for row in rows if row[3] == count])
        print(f"{count} groups: by value {some[:, 0].mean():.3f}, at random {some[:, 1].mean():.3f}")


def draw(rows):
    figure = style.new_figure(9.0, 3.8)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, reading in zip(panels, READINGS, strict=True):
        for steps, colour in zip(SIZES, ("#E69F00", "#D55E00", "#0072B2"), strict=True):
            for column, line in ((4, "-"), (5, (0, (4, 2)))):
                mean = [
                    np.mean([row[column] for row in rows if row[:2] == (reading, steps) and row[3] == count])
                    for count in COUNTS
                ]
                how = "grouped by value" if column == 4 else "grouped at random"
                axes.plot(COUNTS, mean, color=colour, linestyle=line, linewidth=1.6, label=f"{steps:,} steps, {how}")
        style.tidy(axes)
        axes.set_xscale("log")
        axes.set_xlabel("groups of MDPs (1: the paper's Gaussian; all: joint)")
        axes.set_title(f"{reading} policy", size=style.FONT_SIZE, color=style.INK, loc="left")
        axes.axhline(1.0, color=style.INK, linewidth=0.8)
    panels[0].set_ylabel("spread / true spread")
    panels[0].set_ylim(0, 1.05)
    handles, labels = panels[1].get_legend_handles_labels()
    options = {"frameon": False, "fontsize": style.FONT_SIZE - 1.5, "labelcolor": style.INK, "ncols": 3}
    figure.legend(handles, labels, loc="outside upper left", **options)
    return figure


if __name__ == "__main__":
    main()
