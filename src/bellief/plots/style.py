"""The house look: one colour per agent and method, quiet axes, and files that are equal whenever the pictures are."""

import io
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bellief.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#333333"
FAINT = "#8a8a8a"

# Okabe and Ito's colours, distinct for every kind of colour vision, and a few darker ones. The paper's methods are
# vermillion and ours are blue, for value beliefs and for agents alike.
COLOURS = {
    "bbi": "#D55E00",
    "bbi-optimistic": "#0072B2",
    "bbi-own": "#0072B2",
    "psrl": "#009E73",
    "mmbi": "#CC79A7",
    "bss": "#E69F00",
    "bql": "#56B4E9",
    "vdqn": "#7A5195",
    "gptd": "#8C6D31",
    "q-learning": "#8a8a8a",
    "oracle": INK,
    "monte-carlo": "#8a8a8a",
    "joint": "#0072B2",
    "gaussian": "#D55E00",
    "histogram": "#CC79A7",
    "mean-mdp": INK,
}
_OTHERS = ("#7A5195", "#009E73", "#8C6D31", "#E69F00", "#56B4E9", "#CC79A7")

FONT_SIZE = 10.5
DPI = 160

# What would otherwise differ between two equal pictures: random identifiers and the time of day.
_REPEATABLE: dict[Any, Any] = {"svg.hashsalt": "bellief", "svg.fonttype": "path", "pdf.fonttype": 42}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def colour_of(name: str) -> str:
    """The colour of an agent or method; a name not in `COLOURS` always gets the same one of the other colours."""
    key = name.lower()
    return COLOURS[key] if key in COLOURS else _OTHERS[zlib.crc32(key.encode()) % len(_OTHERS)]


def number(value: float | None, decimals: int | None = None) -> str:
    """Four digits or `decimals` of them after the point, a real minus sign, and a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return "–"
    return (f"{value:.4g}" if decimals is None else f"{value:.{decimals}f}").replace("-", "−")


def percent(share: float) -> str:
    """One decimal; never 0% or 100%, because the number of draws is finite."""
    return "under 0.1%" if share < 0.0005 else "over 99.9%" if share > 0.9995 else f"{share:.1%}"


def shortened(label: str, length: int = 24) -> str:
    """A label that does not push the picture aside."""
    return label if len(label) <= length else label[: length - 1] + "…"


def new_figure(width: float = 6.4, height: float = 4.0) -> "Figure":
    """An empty figure, `width` x `height` inches, unknown to pyplot: no window opens, none has to be closed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def new_axes(width: float = 6.4, height: float = 4.0) -> "Axes":
    """One axes in the house look, on a new figure."""
    return tidy(new_figure(width, height).add_subplot())


def tidy(axes: "Axes", grid: Literal["x", "y"] | None = "y") -> "Axes":
    """Remove what carries no information, and make the rest easy to read; `grid` names the lines to keep."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=FONT_SIZE - 1, length=3, width=0.8)
    axes.tick_params(which="minor", length=0)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=INK, size=FONT_SIZE)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(visible=True, axis=grid, color="#e6e6e6", linewidth=0.8)
    return axes


def without_scale(axes: "Axes") -> "Axes":
    """Remove the vertical axis where heights mean nothing by themselves."""
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return axes


def to_bytes(figure: Any, kind: str, transparent: bool = False) -> bytes:
    """The picture as `png`, `svg` or `pdf`; equal pictures give equal bytes."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(_REPEATABLE):
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=_METADATA[kind], transparent=transparent)
    return buffer.getvalue()


def save(figure: "Figure", path_stem: str | Path) -> list[Path]:
    """Write `path_stem` with the endings .png, .svg and .pdf, and return the three paths."""
    stem = Path(path_stem)
    return [write_whole(stem.with_name(f"{stem.name}.{kind}"), to_bytes(figure, kind)) for kind in _METADATA]
