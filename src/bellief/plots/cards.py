"""Notebook cards: self-contained HTML in the colours of the notebook."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellief.plots import style
from bellief.plots.density import common_window, finite, is_point, outline
from bellief.plots.html_templates import get_template

MOST_ROWS = 12
_WIDTH, _BASE = 260, 56


def posterior_card(posterior: Any) -> str:
    """A `ValuePosterior` as one HTML element: start value, density, values by state, and warnings."""
    start = finite(posterior.start_samples)
    tail = (1 - posterior.level) / 2
    low, high = np.quantile(start, [tail, 1 - tail], method="weibull") if len(start) else (float("nan"), float("nan"))
    mean = start.mean() if len(start) else float("nan")
    level = f"{posterior.level:.0%}"
    interval = f"{level} interval {style.number(low)} to {style.number(high)}"
    colour = style.colour_of(str(posterior.method))
    rows, bars, more = _by_state(posterior)
    return get_template("bellief.plots", "card.html").render(
        title="Value posterior",
        method=posterior.method,
        # Ink would vanish on a dark ground.
        colour="currentColor" if colour == style.INK else colour,
        facts=f"{posterior.transitions:,} transitions · {posterior.states} states · discount {posterior.discount:g}",
        start=style.number(mean),
        said="one number without a spread" if is_point(start) else interval,
        density=_density(start, low, high, mean),
        head=("state", "mean", f"{level} from", "to", ""),
        rows=rows,
        bars=bars,
        more=more,
        what=" states",
        notes=(),
        warnings=posterior.diagnostics.get("warnings", []),
    )


def table_card(title: str, said: str, head: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str]) -> str:
    """A small table as one HTML element; numbers are shortened."""

    def cell(value: Any) -> str:
        return style.number(float(value)) if isinstance(value, float | np.floating) else style.shortened(str(value))

    return get_template("bellief.plots", "card.html").render(
        title=title,
        method="",
        facts=said,
        start="",
        density=None,
        head=head,
        rows=[[cell(value) for value in row] for row in rows[:MOST_ROWS]],
        bars=(),
        more=max(0, len(rows) - MOST_ROWS),
        what="",
        notes=notes,
        warnings=(),
    )


def _density(samples: np.ndarray, low: float, high: float, mean: float) -> dict[str, Any] | None:
    """The density as paths, the whole and the interval; no paths where all draws are one number."""
    if len(samples) == 0:
        return None
    limits = common_window([samples])

    def across(value: float) -> float:
        return round(float(np.clip((value - limits[0]) / (limits[1] - limits[0]), 0, 1)) * _WIDTH, 1)

    hills = []
    if not is_point(samples):
        grid, height = outline(samples, limits, points=120)
        for part, opacity in ((np.ones(len(grid), bool), 0.25), ((grid >= low) & (grid <= high), 0.45)):
            if part.any():
                x, y = grid[part], height[part]
                points = "L".join(f"{across(a)} {_BASE - b * (_BASE - 4):.1f}" for a, b in zip(x, y, strict=True))
                hills.append((f"M{across(x[0])} {_BASE}L{points}L{across(x[-1])} {_BASE}Z", opacity))
    ends = [(0, "start", style.number(limits[0])), (_WIDTH, "end", style.number(limits[1]))]
    return {"width": _WIDTH, "base": _BASE, "mean": across(mean), "hills": hills, "ends": ends}


def _by_state(posterior: Any) -> tuple[list[list[str]], list[tuple[float, ...] | None], int]:
    """Cells of the table's rows, their intervals as bars on the scale that all rows share, and how many are left."""
    (low, high), mean = posterior.interval(), posterior.mean
    listed = getattr(posterior, "listed", np.arange(len(mean)))
    shown = listed[:MOST_ROWS]
    if len(shown) == 0:
        return [], [], 0
    numbers = np.stack([mean[shown], low[shown], high[shown]])
    # Decimals that give the largest number of a column four digits; none where only powers of ten would do.
    largest = float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0))
    decimals = None if largest >= 1e6 or largest < 1e-3 else max(0, 3 - int(np.floor(np.log10(largest))))
    labels = getattr(posterior, "state_labels", None)
    names = [str(state) if labels is None else style.shortened(labels[state]) for state in shown]
    rows = [[name, *(style.number(one, decimals) for one in row)] for name, row in zip(names, numbers.T, strict=True)]
    left, right = float(np.min(low[shown])), float(np.max(high[shown]))
    span = (right - left) or 1.0
    bars: list[tuple[float, ...] | None] = []
    for row in numbers.T:
        if not np.isfinite([*row, left, right]).all():
            bars.append(None)
            continue
        centre, first, last = (4 + 92 * min(max((value - left) / span, 0), 1) for value in row)
        bars.append(tuple(round(place, 1) for place in (first, centre, max(last, first + 0.5))))
    return rows, bars, len(listed) - len(shown)
