"""Learning curves as the paper draws them: mean, 5-95 percentile band, standard error lines."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from bellief.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_curve(
    step: np.ndarray,
    smoothed: Float[np.ndarray, "runs G"],
    label: str = "",
    ax: "Axes | None" = None,
    colour: str | None = None,
    band: bool = True,
    error_lines: bool = True,
    log: bool = True,
    reference: Mapping[str, float] | None = None,
    ylabel: str = "reward per step, smoothed",
) -> "Axes":
    """Draw one agent's curve, on `ax` where one is given, else on a new figure.

    Args:
        step: where the curves were read.
        smoothed: one row per run, smoothed before anything is averaged over runs; a single curve may be flat.
        label: name in the legend; a known agent's name also decides the colour.
        ax: axes to draw on.
        colour: any matplotlib colour, instead of the label's own.
        band: shade from the 5th to the 95th percentile of the runs.
        error_lines: dark lines one standard error above and below the mean.
        log: logarithmic time axis.
        reference: horizontal lines with their names, such as {"optimum": 3.68}.
        ylabel: label of the vertical axis.
    """
    step, smoothed = np.asarray(step), np.atleast_2d(np.asarray(smoothed, dtype=np.float64))
    if ax is None:
        ax = style.new_axes()
    colour = style.colour_of(label) if colour is None else colour
    mean = smoothed.mean(0)
    if len(smoothed) > 1:
        if band:
            low, high = np.quantile(smoothed, [0.05, 0.95], axis=0)
            ax.fill_between(step, low, high, color=colour, alpha=0.16, linewidth=0, zorder=2)
        if error_lines:
            error = smoothed.std(0, ddof=1) / np.sqrt(len(smoothed))
            for line in (mean - error, mean + error):
                ax.plot(step, line, color=style.INK, linewidth=0.7, alpha=0.75, zorder=3)
    ax.plot(step, mean, color=colour, linewidth=2.2, solid_joinstyle="round", label=label or None, zorder=4)
    if log:
        ax.set_xscale("log")
    ax.margins(x=0.01)
    ax.set_xlabel("step")
    ax.set_ylabel(ylabel)
    for name, height in (reference or {}).items():
        draw_level(ax, f"{name} {height:.4g}", height)
    if label:
        legend = ax.legend(frameon=False, loc="best", fontsize=style.FONT_SIZE, labelcolor=style.INK)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return ax


def draw_level(ax: "Axes", text: str, height: float) -> None:
    """A horizontal line with its name."""
    ax.axhline(height, color=style.INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=1)
    ax.annotate(
        text,
        xy=(0.01, height),
        xycoords=ax.get_yaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        color=style.INK,
        size=style.FONT_SIZE - 0.5,
        parse_math=False,
    )
