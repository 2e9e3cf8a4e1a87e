"""Tables and picture of docs/results/coverage.md and bootstrap.md, from what benchmarks/coverage.py wrote.

python benchmarks/coverage_page.py --table docs/results/coverage.csv.gz --out docs
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from bellief.plots import style

DEFAULT = "logged"
NAMES = {
    "frozenlake-slippery": "FrozenLake, slippery",
    "cliffwalking-slippery": "CliffWalking, slippery",
    "taxi-rainy": "Taxi, rainy",
    "nchain": "NChain",
    "frozenlake": "FrozenLake",
    "cliffwalking": "CliffWalking",
    "taxi": "Taxi",
}
RANDOM = ("frozenlake-slippery", "cliffwalking-slippery", "taxi-rainy", "nchain")
COLOURS = {
    "logged": style.COLOURS["joint"],
    "logged, rows weigh 1": "#56B4E9",
    "sparse": "#009E73",
    "paper": style.COLOURS["gaussian"],
    "bootstrap": style.INK,
}


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """One row per task, number of steps and method."""
    held = (table.low <= table.truth) & (table.truth <= table.high)
    table = table.assign(held=held, width=table.high - table.low, bias=table["mean"] - table.truth)
    groups = table.groupby(["task", "steps", "method"], sort=False)
    found = groups.agg(
        logs=("held", "size"),
        coverage=("held", "mean"),
        width=("width", "median"),
        bias=("bias", "mean"),
        visits=("fewest_visits", "median"),
        truth=("truth", "first"),
        seconds=("seconds", "mean"),
    ).reset_index()
    return found.assign(error=np.sqrt(0.9 * 0.1 / found.logs))


def picture(found: pd.DataFrame):
    """Coverage and width against the number of steps, one column per task."""
    tasks = [name for name in RANDOM if name in set(found.task)]
    figure = style.new_figure(3.0 * len(tasks), 5.6)
    panels = figure.subplots(2, len(tasks), squeeze=False)
    for column, task in enumerate(tasks):
        top, bottom = (style.tidy(panels[row, column]) for row in (0, 1))
        part = found[found.task == task]
        top.axhspan(0.9 - 2 * part.error.min(), min(0.9 + 2 * part.error.min(), 1), color="#eeeeee", zorder=0)
        top.axhline(0.9, color=style.FAINT, linewidth=0.8, zorder=1)
        for method, colour in COLOURS.items():
            line = part[part.method == method].sort_values("steps")
            marker = "s" if method == "bootstrap" else "o"
            for axes, values in ((top, line.coverage), (bottom, line.width)):
                axes.plot(line.steps, values, marker=marker, markersize=4, color=colour, linewidth=1.4, label=method)
        top.set(xscale="log", ylim=(-0.03, 1.03))
        top.set_title(NAMES[task], loc="left", color=style.INK, fontsize=style.FONT_SIZE)
        bottom.set(xscale="log", yscale="log", xlabel="transitions in the log")
        for axes in (top, bottom):
            axes.xaxis.set_minor_formatter("")
        if column == 0:
            top.set_ylabel("90% intervals that hold the truth")
            bottom.set_ylabel("median width")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=5, frameon=False, fontsize=style.FONT_SIZE - 1)
    return figure


def coverage_table(found: pd.DataFrame, tasks: tuple[str, ...], methods: list[str]) -> list[str]:
    """Coverage (median width) for every size; methods side by side."""
    lines = ["| task | transitions | fewest visits | logs | " + " | ".join(methods) + " |"]
    lines.append("|---|---|---|---|" + "---|" * len(methods))
    for task in tasks:
        for steps, part in found[found.task == task].groupby("steps"):
            by_method = part.set_index("method")
            cells = []
            for method in methods:
                if method in by_method.index:
                    row = by_method.loc[method]
                    fewer = "" if row.logs == part.logs.max() else f"; {row.logs} logs"
                    cells.append(f"{row.coverage:.3f} ({row.width:.3g}{fewer})")
                else:
                    cells.append("")
            head = f"| {NAMES[task]} | {steps:,} | {part.visits.max():.0f} | {part.logs.max()} | "
            lines.append(head + " | ".join(cells) + " |")
    return lines


def well_visited(table: pd.DataFrame) -> list[str]:
    """Coverage of the default prior over all logs in which every needed pair was seen at least 30 times."""
    lines = ["| task | logs | transitions | coverage | error |", "|---|---|---|---|---|"]
    for task in RANDOM:
        part = table[(table.task == task) & (table.method == DEFAULT) & (table.fewest_visits >= 30)]
        for steps, group in part.groupby("steps"):
            if len(group) >= 20:
                held = ((group.low <= group.truth) & (group.truth <= group.high)).mean()
                error = np.sqrt(0.9 * 0.1 / len(group))
                lines.append(f"| {NAMES[task]} | {len(group)} | {steps:,} | {held:.3f} | {error:.3f} |")
    return lines


def deterministic(found: pd.DataFrame) -> list[str]:
    """Bias and width where nothing is random."""
    lines = [
        "| task | transitions | fewest visits | method | true value | bias | width |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in ("frozenlake", "cliffwalking", "taxi"):
        for _, row in found[found.task == task].iterrows():
            head = f"| {NAMES[task]} | {row.steps:,} | {row.visits:.0f} | {row.method} | "
            lines.append(head + f"{row.truth:.4g} | {row.bias:+.3g} | {row.width:.3g} |")
    return lines


def fill(page: Path, blocks: dict[str, list[str]]) -> None:
    """Put tables between the marks `<!-- name -->` and `<!-- end -->` of a page written by hand."""
    text = page.read_text()
    for name, lines in blocks.items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, after = rest.partition("<!-- end -->")
        text = before + f"<!-- {name} -->\n" + "\n".join(lines) + "\n<!-- end -->" + after
    page.write_text(text)


def main() -> None:
    """Fill both pages and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, default=Path("docs/results/coverage.csv.gz"))
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    table = pd.read_csv(options.table)
    found = summarise(table)
    methods = [name for name in COLOURS if name in set(found.method)]
    tasks = tuple(name for name in RANDOM if name != "nchain")
    fill(
        options.out / "results/coverage.md",
        {
            "coverage": coverage_table(found, tasks, [name for name in methods if name != "bootstrap"]),
            "well visited": well_visited(table),
            "deterministic": deterministic(found),
        },
    )
    seconds = found.groupby(["task", "method"]).seconds.mean().unstack()
    costs = ["| task | " + " | ".join((DEFAULT, "bootstrap")) + " |", "|---|---|---|"]
    for task in ("frozenlake-slippery", "taxi-rainy", "nchain"):
        if task in seconds.index and seconds.loc[task, [DEFAULT, "bootstrap"]].notna().all():
            cells = " | ".join(f"{seconds.loc[task, name]:.3g}" for name in (DEFAULT, "bootstrap"))
            costs.append(f"| {NAMES[task]} | {cells} |")
    side = ("frozenlake-slippery", "taxi-rainy", "nchain")
    fill(
        options.out / "results/bootstrap.md",
        {"coverage": coverage_table(found, side, [DEFAULT, "paper", "bootstrap"]), "seconds": costs},
    )
    (options.out / "images/coverage.png").write_bytes(style.to_bytes(picture(found), "png"))


if __name__ == "__main__":
    main()
