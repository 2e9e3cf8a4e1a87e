"""Notebook cards: HTML that stands by itself, in the notebook's own colours."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float

from bellief.plots import style
from bellief.plots.density import common_window, finite, is_point, outline

MOST_ROWS = 12
_WIDTH, _HEIGHT = 260.0, 64.0

# Only inherited colours and transparency, so that the card suits light and dark themes; `all: initial` would lose them.
_CELL = "padding:1px 12px 1px 0;text-align:right;border:0;background:transparent;font-variant-numeric:tabular-nums"
_FADED = "opacity:.7"


def posterior_card(posterior: Any) -> str:
    """A `ValuePosterior` as one HTML element: start value, density, values by state, and what to beware of."""
    start = finite(posterior.start_samples)
    tail = (1 - posterior.level) / 2
    low, high = np.quantile(start, [tail, 1 - tail], method="weibull") if len(start) else (float("nan"), float("nan"))
    mean = start.mean() if len(start) else float("nan")
    point = is_point(start)
    colour = style.colour_of(str(posterior.method))
    # Ink would vanish on a dark ground.
    colour = "currentColor" if colour == style.INK else colour
    level = f"{posterior.level:.0%}"
    said = "one number without a spread" if point else f"{level} interval {_number(low)} to {_number(high)}"
    facts = (
        f"{posterior.transitions:,} transitions &#183; {posterior.states} states &#183; discount {posterior.discount:g}"
    )
    return (
        '<div style="display:inline-block;max-width:100%;box-sizing:border-box;overflow-x:auto;padding:12px 16px;'
        "border:1px solid rgba(128,128,128,.4);border-radius:8px;color:inherit;"
        'font-family:inherit;font-size:13px;line-height:1.45">'
        f'<div style="font-weight:600">Value posterior <span style="font-weight:400;{_FADED}">'
        f"{escape(str(posterior.method))}</span></div>"
        f'<div style="{_FADED};font-size:12px">{facts}</div>'
        f'<div style="margin:8px 0 0"><span style="font-size:20px;font-weight:600">{_number(mean)}</span> '
        f"start value, {said}</div>"
        f"{_sparkline(start, low, high, mean, colour)}"
        f"{_table(posterior, level, colour)}"
        f"{_warnings(posterior)}</div>"
    )


def table_card(title: str, said: str, head: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str]) -> str:
    """A small table as one HTML element; numbers are shortened, everything else is escaped."""

    def cell(value: Any) -> str:
        return _number(float(value)) if isinstance(value, float | np.floating) else escape(style.shortened(str(value)))

    titles = "".join(f'<th style="{_CELL};font-weight:400;{_FADED}">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr style="background:transparent">{"".join(f"""<td style="{_CELL}">{cell(one)}</td>""" for one in row)}</tr>'
        for row in rows[:MOST_ROWS]
    )
    more = (
        f'<div style="{_FADED};font-size:12px">and {len(rows) - MOST_ROWS} more</div>' if len(rows) > MOST_ROWS else ""
    )
    remarks = "".join(f'<div style="margin-top:4px;max-width:46em">{escape(note)}</div>' for note in notes)
    return (
        '<div style="display:inline-block;max-width:100%;box-sizing:border-box;overflow-x:auto;padding:12px 16px;'
        'border:1px solid rgba(128,128,128,.4);border-radius:8px;color:inherit;font-size:13px;line-height:1.45">'
        f'<div style="font-weight:600">{escape(title)}</div><div style="{_FADED};font-size:12px">{escape(said)}</div>'
        '<table style="border-collapse:collapse;border:0;margin:4px 0 0;font-size:12px;color:inherit">'
        f'<tr style="background:transparent">{titles}</tr>{body}</table>{more}{remarks}</div>'
    )


def _number(value: float, decimals: int | None = None) -> str:
    """Four digits or so many decimals, and a real minus sign."""
    if not np.isfinite(value):
        return "&#8211;"
    text = f"{value:.4g}" if decimals is None else f"{value:.{decimals}f}"
    return text.replace("-", "&#8722;")


def _decimals(values: np.ndarray) -> int | None:
    """Decimals that give the largest number of a column four digits; None where only powers of ten would do."""
    largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    return None if largest >= 1e6 or largest < 1e-3 else max(0, 3 - int(np.floor(np.log10(largest))))


def _sparkline(samples: np.ndarray, low: float, high: float, mean: float, colour: str) -> str:
    if len(samples) == 0:
        return ""
    limits = common_window([samples])
    base = _HEIGHT - 8

    def across(value: float) -> float:
        return round(float(np.clip((value - limits[0]) / (limits[1] - limits[0]), 0, 1)) * _WIDTH, 1)

    if is_point(samples):
        body = f'<path d="M{across(mean)} {base}V6" stroke="{colour}" stroke-width="2.5"/>'
    else:
        grid, height = outline(samples, limits, points=120)
        inside = (grid >= low) & (grid <= high)
        body = "".join(
            f'<path d="{_hill(across, grid[part], height[part], base)}" fill="{colour}" fill-opacity="{opacity}"/>'
            for part, opacity in ((np.ones_like(inside), 0.25), (inside, 0.45))
            if part.any()
        )
    ends = "".join(
        f'<text x="{place}" y="{_HEIGHT + 4}" text-anchor="{anchor}" font-size="9.5" fill="currentColor" '
        f'fill-opacity=".7">{_number(value)}</text>'
        for place, anchor, value in ((0, "start", limits[0]), (_WIDTH, "end", limits[1]))
    )
    return (
        f'<svg role="img" aria-label="Density of the start value" width="{_WIDTH:.0f}" height="{_HEIGHT + 8:.0f}" '
        f'viewBox="0 0 {_WIDTH:.0f} {_HEIGHT + 8:.0f}" style="display:block;margin:4px 0 6px;max-width:100%">{body}'
        f'<path d="M0 {base}H{_WIDTH:.0f}" stroke="currentColor" stroke-opacity=".4"/>'
        f'<circle cx="{across(mean)}" cy="{base}" r="3.5" fill="{colour}"/>{ends}</svg>'
    )


def _hill(across, grid: Float[np.ndarray, "G"], height: Float[np.ndarray, "G"], base: float) -> str:
    points = "L".join(f"{across(x)} {base - y * (base - 4):.1f}" for x, y in zip(grid, height, strict=True))
    return f"M{across(grid[0])} {base}L{points}L{across(grid[-1])} {base}Z"


def _table(posterior: Any, level: str, colour: str) -> str:
    low, high = posterior.interval()
    mean = posterior.mean
    listed = getattr(posterior, "listed", np.arange(len(mean)))
    shown = listed[:MOST_ROWS]
    if len(shown) == 0:
        return ""
    head = "".join(
        f'<th style="{_CELL};font-weight:400;{_FADED}">{title}</th>'
        for title in ("state", "mean", f"{level} from", "to", "")
    )
    left, right = float(np.min(low[shown])), float(np.max(high[shown]))
    labels = getattr(posterior, "state_labels", None)
    decimals = _decimals(np.concatenate([low[shown], mean[shown], high[shown]]))

    def row(state: int) -> str:
        numbers = (mean[state], low[state], high[state])
        label = str(state) if labels is None else escape(style.shortened(labels[state]))
        cells = [label, *(_number(value, decimals) for value in numbers)]
        cells.append(_bar(low[state], mean[state], high[state], left, right, colour))
        inner = "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells)
        return f'<tr style="background:transparent">{inner}</tr>'

    rows = "".join(row(state) for state in shown)
    left_out = len(listed) - len(shown)
    more = f'<div style="{_FADED};font-size:12px">and {left_out} more states</div>' if left_out else ""
    look = "border-collapse:collapse;border:0;margin:0;font-size:12px;color:inherit"
    return f'<table style="{look}"><tr style="background:transparent">{head}</tr>{rows}</table>{more}'


def _bar(low: float, mean: float, high: float, left: float, right: float, colour: str) -> str:
    """The interval as a bar on the scale that all rows share."""
    if not np.isfinite([low, mean, high, left, right]).all():
        return ""
    span = (right - left) or 1.0
    first, centre, last = (4 + 92 * min(max((value - left) / span, 0), 1) for value in (low, mean, high))
    last = max(last, first + 0.5)
    return (
        '<svg width="100" height="10" viewBox="0 0 100 10" aria-hidden="true" style="display:block">'
        f'<path d="M{first:.1f} 5H{last:.1f}" stroke="{colour}" stroke-opacity=".65" stroke-width="4"/>'
        f'<circle cx="{centre:.1f}" cy="5" r="3" fill="{colour}"/></svg>'
    )


def _warnings(posterior: Any) -> str:
    warnings = posterior.diagnostics.get("warnings", [])
    if not warnings:
        return ""
    items = "".join(f'<li style="margin:2px 0">{escape(str(warning))}</li>' for warning in warnings)
    return (
        '<div style="margin-top:8px;max-width:46em;padding:4px 10px;border-left:3px solid #E69F00">'
        f'<ul style="margin:0;padding-left:16px">{items}</ul></div>'
    )
