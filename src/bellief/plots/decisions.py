"""Pictures for decisions: policies side by side, what to collect, and the effect of more data."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bellief.plots import style
from bellief.plots.density import common_window, finite
from bellief.plots.value_pictures import ROW_HEIGHT, draw_row, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_policies(comparison: Any, ax: "Axes | None" = None) -> "Axes":
    """The density of each policy's start value, one row per policy, with its interval and its chance to be best."""
    rows = [finite(comparison.samples[:, number]) for number in range(len(comparison.names))]
    if ax is None:
        ax = style.without_scale(style.tidy(style.new_figure(6.4, 1.3 + 0.62 * len(rows)).add_subplot(), grid="x"))
    limits = common_window(rows)
    chances = comparison.prob_best
    for level, number in enumerate(reversed(range(len(rows)))):
        colour = style.colour_of("joint") if comparison.names[number] == comparison.best else style.FAINT
        draw_row(ax, rows[number], level, limits, comparison.level, colour)
    names = [
        f"{style.shortened(name)}\nbest: {style.percent(chance)}"
        for name, chance in zip(comparison.names, chances, strict=True)
    ]
    ax.set_xlim(*limits)
    ax.set_ylim(-0.18, len(rows) - 1 + ROW_HEIGHT + 0.15)
    ax.set_yticks(range(len(rows)), names[::-1], parse_math=False)
    ax.set_xlabel("value from the start")
    set_title(ax, f"What each policy is worth: mean and {comparison.level:.0%} interval")
    return ax


def plot_forecasts(comparison: Any, ax: "Axes | None" = None) -> "Axes":
    """Chance of choosing the best policy against the number of further transitions."""
    ax = style.new_axes(6.4, 2.8) if ax is None else ax
    sizes = np.array([forecast.transitions for forecast in comparison.forecasts])
    chances = np.array([forecast.chance for forecast in comparison.forecasts])
    errors = np.nan_to_num(np.array([forecast.error for forecast in comparison.forecasts]))
    blue = style.colour_of("joint")
    ax.errorbar(sizes, chances, errors, color=blue, marker="o", markersize=4.5, capsize=2.5, linewidth=1.5)
    ax.axhline(comparison.target, color=style.INK, linewidth=1, linestyle=(0, (4, 2)))
    now = float(comparison.prob_best.max())
    ax.axhline(now, color=style.FAINT, linewidth=1)
    ax.annotate("now", (1.0, now), xycoords=("axes fraction", "data"), xytext=(4, -3), textcoords="offset points",
                color=style.FAINT, fontsize=style.FONT_SIZE - 1.5, annotation_clip=False)  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(sizes.min() / 1.25, sizes.max() * 1.25)
    low = min(now, float((chances - errors).min()), comparison.target)
    ax.set_ylim(max(0.0, low - 0.25 * (1 - low)), 1.005)
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ticks = sizes if len(sizes) <= 8 else sizes[::2]
    ax.set_xticks(ticks, [f"{size:,}" for size in ticks])
    ax.minorticks_off()
    ax.set_xlabel("further transitions")
    set_title(ax, f"Chance of choosing the best policy (dashed: {comparison.target:.0%})")
    return ax


def plot_collection(plan: Any, top: int = 10, ax: "Axes | None" = None) -> "Axes":
    """The pairs whose observation would remove the most variance, as bars; of infinite ones, the time spent there."""
    pairs = plan.to_dict(top)["pairs"]
    infinite = any(pair["variance_reduction"] is None for pair in pairs)
    if infinite:
        pairs = [pair for pair in pairs if pair["variance_reduction"] is None]
    # Draws without variance, such as a single one, have no shares.
    lengths = [pair["discounted_visits"] if infinite else pair["share"] or 0.0 for pair in pairs]
    if ax is None:
        ax = style.tidy(style.new_figure(6.4, 1.2 + 0.3 * len(pairs)).add_subplot(), grid="x")
    names = [
        f"{style.shortened(str(pair['state']))}, {style.shortened(str(pair['action']))} (seen {pair['seen']:,})"
        for pair in pairs
    ]
    ax.barh(range(len(pairs)), lengths[::-1], color=style.colour_of("joint"), alpha=0.75, height=0.68)
    ax.set_yticks(range(len(pairs)), names[::-1], parse_math=False)
    ax.set_ylim(-0.6, len(pairs) - 0.4)
    if infinite:
        ax.set_xlabel("expected discounted visits by the policy")
        set_title(ax, "Never tried, so the value has no finite variance: try these first")
    else:
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
        ax.set_xlabel("share of the value's variance that is expected to go")
        times = "one more visit" if plan.visits == 1 else f"{plan.visits:,} more visits"
        set_title(ax, f"What {times} of a pair would tell")
    return ax
