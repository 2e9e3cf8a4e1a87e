"""A chart as one SVG picture, for readers without JavaScript; in the browser the same data is drawn again."""

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from bellief.report.document import Chart, Curve

WIDTH, HEIGHT = 760, 340
RIGHT, TOP, BOTTOM = 24, 14, 44


class Scale:
    """From a value to a place between two ends, evenly or by its logarithm."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool = False):
        self.log, self.low, self.high, self.start, self.end = log, low, high, start, end

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high, here = (math.log(one) if self.log else one for one in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (here - low) / (high - low)

    def usable(self, value: float) -> bool:
        """Whether the value has a place."""
        return math.isfinite(value) and (value > 0 or not self.log)


def ticks(low: float, high: float, wanted: int) -> list[float]:
    """Round numbers between two ends, about as many as wanted."""
    raw = (high - low) / wanted
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def log_ticks(low: float, high: float, wanted: int) -> list[float]:
    """Powers of ten between two ends; round numbers where there are fewer than two."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        return [tick for tick in ticks(low, high, wanted) if tick > 0]
    return [10.0**power for power in range(first, last + 1, max(1, math.ceil((last - first + 1) / wanted)))]


def short(value: float) -> str:
    """A number for an axis."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size and (abs(value) >= 1e4):
            return f"{value / size:.3g}{letter}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def finite(values: Iterable[float], log: bool = False) -> list[float]:
    """The values that can be drawn."""
    return [float(value) for value in values if math.isfinite(value) and (value > 0 or not log)]


def draw(chart: Chart, looks: Sequence[tuple[int, int]], alt: str) -> Markup:
    """The picture; `looks` are the numbers of each curve's colour and dashes."""
    across = finite((x for curve in chart.curves for x in curve.x), chart.log_x)
    log = chart.log_x and bool(across)
    low, high = _spread(_heights(chart))
    left_end, right_end = (min(across), max(across)) if across else (0.0, 1.0)
    if left_end == right_end:
        right_end = left_end + 1
    names = [(tick, short(tick)) for tick in ticks(low, high, 6)]
    left = 7 * max(len(name) for _, name in names) + 34
    across_scale = Scale(left_end, right_end, left, WIDTH - RIGHT, log)
    up_scale = Scale(low, high, HEIGHT - BOTTOM, TOP)
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, alt),
        *_axes(chart, names, across_scale, up_scale, left),
        *(_curve(one, look, across_scale, up_scale) for one, look in zip(chart.curves, looks, strict=True)),
        *(_level(name, value, left, up_scale) for name, value in chart.lines if math.isfinite(value)),
        Markup("</svg>"),
    ]
    return Markup("").join(parts)


def _heights(chart: Chart) -> list[float]:
    heights = finite(value for _, value in chart.lines)
    for curve in chart.curves:
        for values in (curve.mean, curve.low, curve.high):
            heights += finite(values if values is not None else ())
        if curve.error is not None:
            pairs = list(zip(curve.mean, curve.error, strict=True))
            heights += finite(mean + sign * error for mean, error in pairs for sign in (-1, 1))
    return heights


def _spread(heights: list[float]) -> tuple[float, float]:
    low, high = (min(heights), max(heights)) if heights else (0.0, 1.0)
    if low == high:
        low, high = low - (abs(low) * 0.1 or 0.5), high + (abs(high) * 0.1 or 0.5)
    margin = (high - low) * 0.05
    return low - margin, high + margin


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(kind, x1, x2, y1, y2)


def _text(text: str, x: float, y: float, anchor: str = "start", kind: str = "") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, text)


def _axes(chart: Chart, names: list[tuple[float, str]], across: Scale, up: Scale, left: float) -> list[Markup]:
    floor = HEIGHT - BOTTOM
    parts = []
    for tick, name in names:
        parts += [_line("grid", left, WIDTH - RIGHT, up(tick), up(tick)), _text(name, left - 8, up(tick) + 4, "end")]
    for tick in (log_ticks if across.log else ticks)(across.low, across.high, 7):
        parts += [
            _line("axis", across(tick), across(tick), floor, floor + 4),
            _text(short(tick), across(tick), floor + 18, "middle"),
        ]
    middle = left + (WIDTH - RIGHT - left) / 2
    turned = Markup('<text transform="translate(13 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>')
    return [
        *parts,
        _line("axis", left, WIDTH - RIGHT, floor, floor),
        _text(chart.x_label + (" (logarithmic)" if across.log else ""), middle, HEIGHT - 6, "middle"),
        turned.format(TOP + (floor - TOP) / 2, chart.y_label),
    ]


def _path(points: Iterable[tuple[float, float] | None]) -> str:
    text, pen = "", "M"
    for point in points:
        if point is None:
            pen = "M"
            continue
        # A point between two gaps is a line of no length, which round ends make visible.
        text, pen = f"{text}{pen}{point[0]:.1f} {point[1]:.1f}" + ("h0" if pen == "M" else ""), "L"
    return text


def _curve(curve: Curve, look: tuple[int, int], across: Scale, up: Scale) -> Markup:
    def places(values: Iterable[float]) -> list[tuple[float, float] | None]:
        pairs = zip(curve.x, values, strict=True)
        return [(across(x), up(y)) if across.usable(x) and math.isfinite(y) else None for x, y in pairs]

    def drawn(kind: str, path: str) -> Markup:
        return Markup('<path class="{}" d="{}"/>').format(kind, path)

    parts = []
    if curve.low is not None and curve.high is not None:
        around = [point for point in places(curve.high) if point] + [p for p in reversed(places(curve.low)) if p]
        parts.append(drawn("band", _path(around) + "Z" if around else ""))
    if curve.error is not None:
        pairs = list(zip(curve.mean, curve.error, strict=True))
        parts += [drawn("error", _path(places(mean + sign * error for mean, error in pairs))) for sign in (-1, 1)]
    parts.append(drawn(f"mean d{look[1]}", _path(places(curve.mean))))
    kind = f"curve k{look[0]}" + (" ours" if curve.ours else "")
    return Markup('<g class="{}">{}</g>').format(kind, Markup("").join(parts))


def _level(name: str, value: float, left: float, up: Scale) -> Markup:
    label = _text(f"{name} {short(value)}", left + 6, up(value) - 6, kind="level-name")
    return _line("level", left, WIDTH - RIGHT, up(value), up(value)) + label
