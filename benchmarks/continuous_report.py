"""The table and the pictures of docs/results/continuous.md from what benchmarks/continuous.py has written.

python benchmarks/continuous_report.py DIR --write docs/results
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from continuous import AGENT_ORDER, read, survived

from bellief.plots import statistics, style
from bellief.plots.curves import plot_curve

NAMES = {"bbi": "BBI, ours", "bbi-paper": "BBI as printed", "psrl": "PSRL", "gptd": "GPTD", "vdqn": "VDQN"}
COLOURS = {"bbi": "bbi-own", "bbi-paper": "bbi"}
SPANS = {
    "pendulum": ((0, 1_000), (1_000, 10_000), (10_000, 50_000), (90_000, 100_000)),
    "linear-model": ((0, 500), (500, 2_000), (2_000, 10_000), (10_000, 12_000)),
}


def by_agent(lines: list[dict], env: str) -> dict[str, list[dict]]:
    """Lines of one environment by agent, runs in order."""
    found = {name: [line for line in lines if line["env"] == env and line["agent"] == name] for name in AGENT_ORDER}
    return {name: sorted(own, key=lambda line: line["run"]) for name, own in found.items() if own}


def falls_between(line: dict, first: int, last: int) -> int:
    """Episodes that ended (were not cut) between two steps."""
    return line["counted"][str(last)][1] - (line["counted"][str(first)][1] if first else 0)


def tables(env: str, agents: dict[str, list[dict]]) -> list[str]:
    """Steps survived and falls by span, and what the first agent has over the others, run by run."""
    spans = [span for span in SPANS[env] if all(str(span[1]) in own[0]["counted"] for own in agents.values())]
    names = [f"steps {first:,} to {last:,}" for first, last in spans]
    out = [
        f"| agent | runs | {' | '.join(names)} | falls in the whole run, median (most) |",
        "|---|---|" + "---|" * (len(spans) + 1),
    ]
    for name, own in agents.items():
        cells = []
        for span in spans:
            values = [survived(line, *span) for line in own]
            low, high = np.quantile(values, [0.05, 0.95])
            cells.append(f"{np.mean(values):,.0f} ({low:,.0f} to {high:,.0f})")
        falls = [line["counted"][str(line["steps"])][1] for line in own]
        out.append(f"| {NAMES[name]} | {len(own)} | {' | '.join(cells)} | {np.median(falls):g} ({max(falls)}) |")
    out += ["", "Falls in each span, mean over runs:", "", f"| agent | {' | '.join(names)} |"]
    out += ["|---|" + "---|" * len(spans)]
    for name, own in agents.items():
        cells = [f"{np.mean([falls_between(line, *span) for line in own]):,.1f}" for span in spans]
        out.append(f"| {NAMES[name]} | {' | '.join(cells)} |")
    for title, count in (("steps survived", survived), ("falls", falls_between)):
        out += ["", *paired(title, count, agents, spans, names)]
    return out


def paired(title: str, count, agents: dict[str, list[dict]], spans: list, names: list[str]) -> list[str]:
    """What the first agent has more than the others, run by run."""
    first = next(iter(agents))
    base = {line["run"]: line for line in agents[first]}
    out = [f"{NAMES[first]} less the others, {title}, paired over runs, with 95% bootstrap interval:", ""]
    out += [f"| less | runs | {' | '.join(names)} |", "|---|---|" + "---|" * len(spans)]
    for name, own in list(agents.items())[1:]:
        shared = [line for line in own if line["run"] in base]
        cells = []
        for span in spans:
            ours = np.array([count(base[line["run"]], *span) for line in shared], dtype=float)
            gap = statistics.paired_difference(ours, np.array([count(line, *span) for line in shared], dtype=float))
            cells.append(f"{gap.value:+,.4g} [{gap.low:+,.4g}, {gap.high:+,.4g}]")
        out.append(f"| {NAMES[name]} | {len(shared)} | {' | '.join(cells)} |")
    return out


def picture(env: str, agents: dict[str, list[dict]], path: Path) -> None:
    """Smoothed steps survived."""
    axes = None
    for name, own in agents.items():
        step = np.array([point[0] for point in own[0]["curve"]])
        curves = np.array([[point[1] for point in line["curve"]] for line in own])
        colour = style.colour_of(COLOURS.get(name, name))
        axes = plot_curve(step, curves, NAMES[name], axes, colour, error_lines=False, ylabel="steps survived, smoothed")
    axes.set_yscale("log")
    path.write_bytes(style.to_bytes(axes.figure, "png"))


def write_table(lines: list[dict], path: Path) -> None:
    """Every run's episodes over, falls and total length of the episodes up to each mark."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["env", "agent", "run", "step", "episodes", "falls", "length"])
        for line in lines:
            for mark, counts in sorted(line["counted"].items(), key=lambda item: int(item[0])):
                table.writerow([line["env"], line["agent"], line["run"], mark, *counts])


def main() -> None:
    """Print the tables, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    lines = read(options.folder)
    write_table(lines, options.write / "continuous.csv")
    for env in SPANS:
        agents = by_agent(lines, env)
        if agents:
            print("\n".join([f"## {env}", "", *tables(env, agents), ""]))
            picture(env, agents, options.write.parent / "images" / f"continuous-{env}.png")


if __name__ == "__main__":
    main()
