"""A chart as one picture, for readers without JavaScript; in the browser the same data is drawn again."""

import base64
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from bellief.plots import style
from bellief.plots.curves import draw_level
from bellief.report.document import Chart, Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The dashes of the style sheet.
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (5, 1.6, 1.2, 1.6)))


def draw(chart: Chart, looks: Sequence[tuple[str, int]], alt: str) -> Markup:
    """The picture as an element of a page; `looks` are each curve's colour and the number of its dashes."""
    axes = style.new_axes(7.9, 3.5)
    log = chart.log_x and any(x > 0 for curve in chart.curves for x in curve.x)
    for number, (curve, look) in enumerate(zip(chart.curves, looks, strict=True)):
        _draw_curve(axes, curve, look, number, log)
    for name, height in chart.lines:
        if math.isfinite(height):
            draw_level(axes, _plain(f"{name} {height:.4g}"), height)
    if log:
        axes.set_xscale("log")
    axes.margins(x=0.01)
    axes.set_xlabel(_plain(chart.x_label + (" (logarithmic)" if log else "")), parse_math=False)
    axes.set_ylabel(_plain(chart.y_label), parse_math=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that the font does not have
        content = style.to_bytes(axes.figure, "svg")
    address = "data:image/svg+xml;base64," + base64.b64encode(content).decode()
    return Markup('<img alt="{}" src="{}">').format(alt, address)


def _draw_curve(axes: "Axes", curve: Curve, look: tuple[str, int], number: int, log: bool) -> None:
    """Mean, band and lines of the standard error; their groups are named, so that pictures can be read by programs."""
    x, mean = (np.array(values, dtype=float) for values in (curve.x, curve.mean))
    x[~np.isfinite(x) | ((x <= 0) & log)] = np.nan
    mean[~np.isfinite(mean)] = np.nan
    colour, dash = look
    if curve.low is not None and curve.high is not None:
        low, high = (np.array(values, dtype=float) for values in (curve.low, curve.high))
        shown = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
        axes.fill_between(
            x[shown], low[shown], high[shown], color=colour, alpha=0.15, linewidth=0, gid=f"band-{number}", zorder=2
        )
    if curve.error is not None:
        for sign, name in ((-1, "below"), (1, "above")):
            side = mean + sign * np.asarray(curve.error, dtype=float)
            axes.plot(x, side, color=style.INK, linewidth=0.7, alpha=0.75, gid=f"error-{number}-{name}", zorder=3)
    width = 3.0 if curve.ours else 2.0
    axes.plot(x, mean, color=colour, linewidth=width, linestyle=DASHES[dash], gid=f"mean-{number}", zorder=4)
    # A point between two gaps makes no line.
    gap = np.concatenate([[True], ~np.isfinite(x + mean), [True]])
    alone = ~gap[1:-1] & gap[:-2] & gap[2:]
    axes.plot(x[alone], mean[alone], "o", markersize=width, color=colour, zorder=4)


def _plain(text: str) -> str:
    """Text that XML can hold."""
    shown = text.encode("utf-8", "replace").decode()
    return "".join(character if character.isprintable() else "\ufffd" for character in shown)
