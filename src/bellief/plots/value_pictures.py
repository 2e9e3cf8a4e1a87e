"""Pictures of value posteriors: one posterior state by state, and several methods against a reference."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bellief.errors import UserError
from bellief.plots import style
from bellief.plots.density import common_window, finite, is_point, outline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 8
ROW_HEIGHT = 0.82

METHOD_LABELS = {
    "monte-carlo": "Monte Carlo",
    "joint": "joint",
    "gaussian": "Gaussian",
    "histogram": "histogram",
    "mean-mdp": "mean MDP",
}


def plot_posterior(posterior: Any, states: Sequence[int] | None = None, ax: "Axes | None" = None) -> "Axes":
    """The density of each state's value, one row per state, with its credible interval shaded and its mean dotted.

    `posterior` is a `ValuePosterior` or anything with its attributes. Without `states`, all of them up to eight, else
    the value averaged over first states. Every row is scaled to the same height, so that a sharp and a vague posterior
    can both be read; the horizontal axis leaves out far tails. Draws on `ax` where one is given, else on a new figure
    that pyplot does not manage: end a notebook cell with `.figure` to see it.
    """
    rows = _rows(posterior, states)
    if ax is None:
        ax = style.tidy(style.new_figure(6.4, 1.3 + 0.55 * len(rows)).add_subplot(), grid="x")
        style.without_scale(ax)
    colour = style.colour_of(posterior.method)
    limits = common_window([samples for _, samples in rows])
    for level, (_, samples) in enumerate(reversed(rows)):
        draw_row(ax, samples, level, limits, posterior.level, colour)
    ax.set_xlim(*limits)
    ax.set_ylim(-0.18, len(rows) - 1 + ROW_HEIGHT + 0.15)
    ax.set_yticks(range(len(rows)), [label for label, _ in reversed(rows)], parse_math=False)
    ax.set_xlabel("value")
    method = METHOD_LABELS.get(posterior.method, posterior.method)
    spread = not all(is_point(samples) for _, samples in rows)
    said = f"mean and {posterior.level:.0%} interval" if spread else "no spread"
    set_title(ax, f"Value posterior, {method}: {said}")
    return ax


def set_title(ax: "Axes", text: str) -> None:
    """A quiet title at the left."""
    # A dollar sign in a name must not be taken for the beginning of a formula.
    ax.set_title(text, loc="left", color=style.INK, fontsize=style.FONT_SIZE + 0.5, parse_math=False)


def _rows(posterior: Any, states: Sequence[int] | None) -> list[tuple[str, np.ndarray]]:
    count = posterior.samples.shape[1]
    if states is None:
        states = [int(state) for state in getattr(posterior, "listed", range(count))]
        if len(states) > MOST_ROWS or not states:
            return [("start", finite(posterior.start_samples))]
    if len(states) == 0:
        raise UserError("There is no state to plot: name at least one.")
    for state in states:
        if not 0 <= state < count:
            raise UserError(f"There is no state {state} to plot; states run from 0 to {count - 1}.")
    labels = getattr(posterior, "state_labels", None)
    names = {state: f"state {state}" if labels is None else style.shortened(labels[state]) for state in states}
    return [(names[state], finite(posterior.samples[:, state])) for state in states]


def draw_row(ax: "Axes", samples: np.ndarray, base: float, limits, level: float, colour: str) -> None:
    """One density on its base line, with interval and mean."""
    ax.axhline(base, color="#d0d0d0", linewidth=0.8, zorder=1)
    if len(samples) == 0:
        return
    if is_point(samples):
        ax.plot([samples[0]] * 2, [base, base + ROW_HEIGHT], color=colour, linewidth=2, solid_capstyle="butt", zorder=3)
        ax.plot(samples[0], base, "o", color=colour, markersize=5, zorder=4)
        return
    # The same rule as the posterior's own interval, so that picture and numbers agree.
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], method="weibull")
    grid, height = outline(samples, limits)
    top = base + ROW_HEIGHT * height
    ax.fill_between(grid, base, top, color=colour, alpha=0.12, linewidth=0, zorder=2)
    ax.fill_between(grid, base, top, where=(grid >= low) & (grid <= high), color=colour, alpha=0.35, lw=0, zorder=2)
    ax.plot(*_above_zero(grid, top, height), color=colour, linewidth=1.3, zorder=3)
    ax.plot([low, high], [base, base], color=colour, linewidth=2.5, solid_capstyle="butt", zorder=3)
    ax.plot(samples.mean(), base, "o", color=colour, markersize=5, markeredgecolor="white", zorder=4)


def _above_zero(grid: np.ndarray, line: np.ndarray, height: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The line with gaps where there is no density, so that curves do not paint over the axis."""
    return grid, np.where((line if height is None else height) > 0.004, line, np.nan)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What one panel shows: draws of one number by several methods.

    `reference` is drawn as a filled hill, every array of `methods[name]` as one thin line, `line` (the mean MDP's
    value) as a dashed vertical line and `real`, where it is known, as a triangle on the axis.
    """

    title: str
    reference: Float[np.ndarray, "N"]
    methods: Mapping[str, Sequence[Float[np.ndarray, "n"]]]
    line: float | None = None
    real: float | None = None

    def window(self) -> tuple[float, float]:
        """A range that holds the reference, the marks and the middle of every line."""
        medians = [np.median(finite(run), keepdims=True) for runs in self.methods.values() for run in runs]
        groups = [self.reference, *medians]
        marks = [np.array([mark]) for mark in (self.line, self.real) if mark is not None]
        return common_window([finite(samples) for samples in groups] + marks, margin=0.03)


def plot_comparison(
    comparison: Comparison,
    ax: "Axes | None" = None,
    limits: tuple[float, float] | None = None,
    labels: Mapping[str, str] | None = None,
) -> "Axes":
    """One panel: the densities of several methods over a reference, all scaled to the same height.

    Equal heights, because a belief that has collapsed is so narrow that at true scale it would flatten all others.
    """
    if ax is None:
        ax = style.without_scale(style.tidy(style.new_figure(6.4, 2.6).add_subplot(), grid="x"))
    names = METHOD_LABELS | dict(labels or {})
    limits = comparison.window() if limits is None else limits
    grey = style.colour_of("monte-carlo")
    reference = finite(comparison.reference)
    if is_point(reference):
        ax.axvline(reference[0], color=grey, linewidth=5, alpha=0.4, label=names["monte-carlo"], zorder=2)
    else:
        grid, height = outline(reference, limits)
        ax.fill_between(grid, 0, height, color=grey, alpha=0.32, linewidth=0, label=names["monte-carlo"], zorder=2)
    for method, runs in comparison.methods.items():
        for number, run in enumerate(runs):
            samples = finite(run)
            points = ([samples[0]] * 2, [0, 1]) if is_point(samples) else _above_zero(*outline(samples, limits))
            label = names.get(method, method) if number == 0 else None
            ax.plot(*points, color=style.colour_of(method), linewidth=1.1, alpha=0.85, label=label, zorder=3)
    if comparison.line is not None:
        dashed: dict[str, Any] = {"color": style.colour_of("mean-mdp"), "linewidth": 1.4, "linestyle": (0, (4, 2))}
        ax.axvline(comparison.line, ymax=0.93, label=names["mean-mdp"], zorder=4, **dashed)
    if comparison.real is not None:
        triangle: dict[str, Any] = {
            "marker": "^",
            "linestyle": "none",
            "color": "#009E73",
            "markersize": 9,
            "clip_on": False,
        }
        ax.plot(comparison.real, 0, label=names.get("real", "real value"), zorder=5, **triangle)
    ax.set_xlim(*limits)
    ax.set_ylim(0, 1.08)
    ax.set_yticks([])
    set_title(ax, comparison.title)
    return ax


def comparison_figure(
    comparisons: Sequence[Comparison],
    labels: Mapping[str, str] | None = None,
    xlabel: str = "value",
    width: float = 7.6,
    legend_columns: int = 2,
) -> "Figure":
    """Panels under one another on one axis, so that a posterior that narrows and moves is seen to do so."""
    legend_rows = -(-5 // legend_columns)
    figure = style.new_figure(width, 0.75 + 0.22 * legend_rows + 1.45 * len(comparisons))
    panels = figure.subplots(len(comparisons), 1, sharex=True, squeeze=False)[:, 0]
    ends = [comparison.window() for comparison in comparisons]
    limits = min(low for low, _ in ends), max(high for _, high in ends)
    for axes, comparison in zip(panels, comparisons, strict=True):
        style.without_scale(style.tidy(axes, grid="x"))
        plot_comparison(comparison, axes, limits, labels)
    panels[-1].set_xlabel(xlabel)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside upper left",
        ncols=legend_columns,
        frameon=False,
        fontsize=style.FONT_SIZE - 0.5,
        labelcolor=style.INK,
        handlelength=1.6,
        columnspacing=1.6,
    )
    return figure
