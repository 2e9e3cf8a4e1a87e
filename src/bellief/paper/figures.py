"""Figures from charts, in the paper's form: mean, 5-95 percentile, black standard-error lines; equal bytes always."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellief.paper import items
from bellief.paper.agents import HORIZONS, OURS
from bellief.paper.computations import READINGS, SIZES
from bellief.paper.items import Item
from bellief.plots import style
from bellief.plots.value_pictures import Comparison, comparison_figure
from bellief.report.document import Chart, Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Variants of BBI that the paper leaves open, and the five tasks.
_VARIANTS = ("#a6761d", "#7570b3", "#e7298a", "#66a61e", "#1b9e77")
_SHADES = ("#f4a582", "#e8743b", "#b5440a", "#6b2500")


def colour_of(label: str) -> str:
    """Agents have the colours they have everywhere in Bellief; horizons are shades of BBI's."""
    if ", H = " in label:
        horizon = int(label.rpartition(" ")[2])
        ours = label.startswith(OURS)
        return style.colour_of("bbi-own") if ours else _SHADES[HORIZONS.index(horizon)]
    if "formula" in label:
        return _SHADES[int(label[-1]) - 1]
    if ", " in label and not label.startswith(OURS):
        agent, _, variant = label.partition(", ")
        return _VARIANTS[sum(map(ord, variant)) % len(_VARIANTS)] if agent == "BBI" else style.colour_of(agent)
    name = {OURS: "bbi-own", "optimal": "oracle"}.get(label.partition(":")[0], label.partition(":")[0])
    return style.colour_of(name)


def _draw(axes: "Axes", curve: Curve, band: bool) -> None:
    x, mean = np.asarray(curve.x), np.asarray(curve.mean)
    colour = colour_of(curve.label)
    if band and curve.low is not None and curve.high is not None:
        axes.fill_between(x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0, zorder=2)
        error = np.asarray(curve.error)
        for side in (mean - error, mean + error):
            axes.plot(x, side, color="black", linewidth=0.7, zorder=4)
    # Ours is no curve of the paper: it is dashed and thicker, in every figure.
    dashed: Any = (0, (5, 1.5)) if curve.ours else "-"
    if curve.label.endswith("upper bound"):
        dashed = (0, (1.2, 1.2))
    if ", " in curve.label and not curve.ours and "H = " not in curve.label and "formula" not in curve.label:
        dashed = (0, (3, 1, 1, 1))
    faint = curve.label.endswith("H = 10") and curve.ours
    axes.plot(
        x,
        mean,
        color=colour,
        linewidth=2.4 if curve.ours else 1.6,
        linestyle=dashed,
        alpha=0.55 if faint else 1.0,
        label=curve.label,
        zorder=5 if curve.ours else 3,
    )


def _dress(axes: "Axes", chart: Chart) -> None:
    style.tidy(axes)
    if chart.log_x:
        axes.set_xscale("log")
    axes.margins(x=0.01)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    for name, height in chart.lines:
        axes.axhline(
            height, color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1, label=f"{name} {height:.4g}"
        )


def _legend(axes: "Axes", columns: int = 1) -> None:
    axes.legend(frameon=False, loc="best", fontsize=style.FONT_SIZE - 1.5, labelcolor=style.INK, ncols=columns)


def curves_figure(charts: Sequence[Chart]) -> "Figure":
    """Charts under one another, all agents of each in one panel, legend beside; bands would hide one another."""
    figure = style.new_figure(8.0, 4.2 if len(charts) == 1 else 3.4 * len(charts))
    for number, chart in enumerate(charts):
        axes = figure.add_subplot(len(charts), 1, number + 1)
        for curve in chart.curves:
            _draw(axes, curve, band=False)
        _dress(axes, chart)
        axes.set_title(chart.title, size=style.FONT_SIZE + 0.5, color=style.INK, loc="left")
        axes.legend(
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            fontsize=style.FONT_SIZE - 1,
            labelcolor=style.INK,
        )
    return figure


def panels_figure(title: str, charts: Sequence[Chart]) -> "Figure":
    """One panel for each agent, on one vertical axis, as in the paper's confidence figures."""
    columns = {1: 1, 2: 2, 3: 3, 4: 2, 7: 4, 8: 4}.get(len(charts), 3)
    rows = -(-len(charts) // columns)
    figure = style.new_figure(3.5 * columns + 0.4, 2.5 * rows + 0.4)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, chart in zip(panels, charts, strict=False):
        _draw(axes, chart.curves[0], band=True)
        _dress(axes, chart._replace(y_label=""))
        axes.set_title(chart.title, size=style.FONT_SIZE, color=style.INK, loc="left")
    for axes in panels[len(charts) :]:
        axes.set_visible(False)
    figure.suptitle(title, size=style.FONT_SIZE + 1, color=style.INK, x=0.01, ha="left")
    figure.supylabel(charts[0].y_label, size=style.FONT_SIZE, color=style.INK)
    return figure


def weights_figure(chart: Chart) -> "Figure":
    """The share of mended plans by task."""
    figure = style.new_figure(7.6, 3.8)
    axes = figure.add_subplot()
    for curve, colour in zip(chart.curves, _VARIANTS, strict=False):
        axes.plot(curve.x, curve.mean, marker="o", markersize=3.5, color=colour, label=curve.label)
    _dress(axes, chart)
    axes.set_ylim(0, max(0.05, 1.05 * max(share for curve in chart.curves for share in curve.mean)))
    axes.set_title(chart.title, size=style.FONT_SIZE + 0.5, color=style.INK, loc="left")
    _legend(axes)
    return figure


def posterior_figure(found: Mapping[str, np.ndarray], reading: str) -> "Figure":
    """Three panels, after 10, 100 and 1,000 steps: the truth, five runs of induction, ours, the mean MDP as a line."""
    comparisons = [
        Comparison(
            f"after {steps:,} steps",
            found[f"{reading}/{steps}/truth"],
            {
                "gaussian": list(found[f"{reading}/{steps}/induction"]),
                "joint": [found[f"{reading}/{steps}/joint"]],
            },
            float(found[f"{reading}/{steps}/mean"][0]),
        )
        for steps in SIZES
    ]
    labels = {
        "monte-carlo": "truth (Monte Carlo)",
        "gaussian": "inferential induction, five runs",
        "joint": "joint belief (ours)",
        "mean-mdp": "mean MDP",
    }
    return comparison_figure(comparisons, labels, f"value of the start state, {reading} policy")


def figures_of(item: Item, charts: Sequence[Chart], samples: Mapping[str, np.ndarray]) -> dict[str, "Figure"]:
    """The figures of an item by the name of their files; none where nothing was computed. `samples` are those of the
    value posteriors.
    """
    if item.kind == items.POSTERIORS:
        return {f"{item.stem}-{reading}": posterior_figure(samples, reading) for reading in READINGS if samples}
    if not charts:
        return {}
    if item.kind == items.PANELS:
        return {item.stem: panels_figure(item.title, charts)}
    if item.kind == items.WEIGHTS:
        return {item.stem: weights_figure(charts[0])}
    return {item.stem: curves_figure(charts)}
