"""The pictures of the benchmarks."""

import statistics
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter


def draw(results: dict[str, dict[str, list[float]]], path: Path) -> None:
    """How many times longer each peer takes than Bellief, with the spread."""
    rows = []
    for workload, times in results.items():
        own = [name for name in times if name.startswith("Bellief")]
        # In the comparison of single things ours is the first one; with many runs at once the last.
        for name in (name for name in times if not name.startswith(("Bellief", "bellief", "import", "python"))):
            base = own[0] if "no weights" not in name else own[-1]
            found = [one / mine for one, mine in zip(times[name], times[base], strict=True)]
            rows.append((f"{workload}: {name}", statistics.median(found), min(found), max(found)))
    rows.reverse()
    figure, axes = plt.subplots(figsize=(8, 0.32 * len(rows) + 1), constrained_layout=True)
    for place, (_, middle, low, high) in enumerate(rows):
        colour = "#2F5FB3" if middle >= 1 else "#B3402F"
        axes.plot([low, high], [place, place], color=colour, lw=2, alpha=0.5)
        axes.plot(middle, place, "o", color=colour)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.axvline(1, color="0.4", lw=1)
    axes.set_xscale("log")
    axes.set_xlabel("time of the other / time of Bellief: median and range")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_growth(results: dict[str, dict], path: Path) -> None:
    """Time and memory against size, with the fitted power."""
    figure, rows = plt.subplots(2, len(results), figsize=(2.3 * len(results), 4.6), squeeze=False, layout="constrained")
    kinds = (("seconds", "time_exponent", "#2F5FB3"), ("MiB", "memory_exponent", "#B3402F"))
    for axes, (kind, exponent, colour) in zip(rows, kinds, strict=True):
        axes[0].set_ylabel(kind)
        for one, (axis, line) in zip(axes, results.items(), strict=True):
            sizes, found, power = np.array(line["sizes"], float), np.array(line[kind]), line[exponent]
            level = np.exp(np.mean(np.log(found) - power * np.log(sizes)))
            one.plot(sizes, level * sizes**power, color="0.6", lw=1)
            one.plot(sizes, found, "o", color=colour, ms=5)
            one.set_xscale("log")
            one.set_yscale("log")
            one.xaxis.set_minor_formatter(NullFormatter())
            one.yaxis.set_minor_formatter(NullFormatter())
            one.set_xticks([sizes[0], sizes[-1]], [f"{size:,.0f}" for size in (sizes[0], sizes[-1])])
            one.set_yticks([found[0], found[-1]], [f"{value:.2g}" for value in (found[0], found[-1])])
            one.set_title(f"grows as size$^{{{power}}}$", fontsize=9)
            one.set_xlabel(axis if kind == "MiB" else "")
            one.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)
