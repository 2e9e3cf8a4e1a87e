"""`render`: a `Document` as one HTML file that works from a disk, without a network, and without JavaScript.

The same document gives the same bytes. All text is escaped by the template; data for the script is JSON in which no
character can end the element that contains it. The Content-Security-Policy of the page allows no loading
and only its own script and style, which are identified by their hashes.
"""

import base64
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from bellief.plots.html_templates import get_template
from bellief.plots.style import COLOURS
from bellief.report import document as said
from bellief.report.document import Chart, Document, Picture, Section, Table

# The signs of verdicts: class and a character, so that no meaning depends on colour alone.
SIGNS = {
    said.REPRODUCED: ("good", "✓"),
    said.NOT_REPRODUCED: ("bad", "✗"),
    said.UNDER_SPECIFIED: ("open", "?"),
    said.TOO_SMALL: ("small", "…"),
}
# The house colours by their place in the style sheet, where each has a lighter twin for dark grounds.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#8C6D31", "#8a8a8a", "#333333")
DASHES = 4
# Rows of the table behind a chart.
TABLE_ROWS = 15


def render(document: Document) -> str:
    """The page.

    >>> from bellief.report.document import Document
    >>> from bellief.report.interactive import render
    >>> page = render(Document("A <report>", ["What it says."], [], []))
    >>> page.startswith("<!DOCTYPE html>"), "A &lt;report&gt;" in page
    (True, True)
    """
    from markupsafe import Markup

    css, script = (_asset(f"interactive.{kind}") for kind in ("css", "js"))
    ids = _ids([section.anchor for section in document.sections])
    looks = _looks(document)
    page = get_template("bellief.report", "interactive.html").render(
        document=document,
        policy=_policy(css, script),
        css=Markup(css),
        script=Markup(script),
        known=SIGNS.__contains__,
        undecided=said.TOO_SMALL,
        sign=lambda verdict: SIGNS.get(verdict, ("small", "•")),
        counts=sorted(
            Counter(one.verdict for one in document.verdicts).items(), key=lambda pair: (_order(pair[0]), pair[0])
        ),
        ids=dict(reversed([(section.anchor, name) for section, name in zip(document.sections, ids, strict=True)])),
        sections=[
            _section(section, name, document, looks) for section, name in zip(document.sections, ids, strict=True)
        ],
    )
    # Characters that UTF-8 or HTML do not allow are replaced by U+FFFD.
    return page.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


@cache
def _asset(name: str) -> str:
    return resources.files("bellief.report").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(css: str, script: str) -> str:
    def named(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; img-src data:; style-src {named(css)}; script-src {named(script)}; base-uri 'none'; "
        "form-action 'none'"
    )


def _order(verdict: str) -> int:
    return list(SIGNS).index(verdict) if verdict in SIGNS else len(SIGNS)


def _ids(anchors: Sequence[str]) -> list[str]:
    """Names that are valid in an address, each once, and none that the page itself uses."""
    taken, found = {"main", "made", "made-title", "verdicts", "verdicts-title"}, []
    for anchor in anchors:
        name = base = re.sub(r"[^A-Za-z0-9_.:-]", "-", anchor) or "section"
        number = 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken |= {name, f"{name}-title"}
        found.append(name)
    return found


def _looks(document: Document) -> dict[str, tuple[int, int]]:
    """Colour and dashes of every label, the same in all charts; known agents have their own colours."""
    blocks = [block for section in document.sections for block in section.blocks]
    labels = list(dict.fromkeys(curve.label for block in blocks if isinstance(block, Chart) for curve in block.curves))
    known = {name: PALETTE.index(colour) for name, colour in COLOURS.items() if colour in PALETTE}
    chosen: dict[str, tuple[int, int]] = {}
    for label in labels:
        if label.lower() in known and (known[label.lower()], 0) not in chosen.values():
            chosen[label] = (known[label.lower()], 0)
    free = [(colour, dash) for dash in range(DASHES) for colour in range(len(PALETTE))]
    for number, label in enumerate(label for label in labels if label not in chosen):
        left = [look for look in free if look not in chosen.values()]
        chosen[label] = left[0] if left else free[number % len(free)]
    return chosen


def _section(section: Section, name: str, document: Document, looks: dict[str, tuple[int, int]]) -> dict[str, Any]:
    return {
        **section._asdict(),
        "id": name,
        "verdicts": [one for one in document.verdicts if one.item == section.anchor],
        "blocks": [_block(block, f"{name}-{number}", looks) for number, block in enumerate(section.blocks, 1)],
    }


def _block(block: Chart | Table | Picture, name: str, looks: dict[str, tuple[int, int]]) -> dict[str, Any]:
    if isinstance(block, Chart):
        return _chart(block, name, looks)
    if isinstance(block, Table):
        return {"kind": "Table", **_table(block)}
    return {"kind": "Picture", "title": block.title, "alt": block.alt, "address": block.source()}


def _table(table: Table) -> dict[str, Any]:
    rows = [["" if cell is None else str(cell) for cell in row] for row in table.rows]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    numeric = [any(column) and all(re.match(r"[-+−±]?\.?\d|$|–$|nan$", cell) for cell in column) for column in columns]
    return {**table._asdict(), "rows": rows, "numeric": numeric}


def _chart(chart: Chart, name: str, looks: dict[str, tuple[int, int]]) -> dict[str, Any]:
    from markupsafe import Markup

    from bellief.report.static_chart import draw

    own = [looks[curve.label] for curve in chart.curves]
    alt = f"{chart.title}: {chart.y_label} over {chart.x_label} of {', '.join(curve.label for curve in chart.curves)}"
    legend = [
        {"label": curve.label, "ours": curve.ours, "colour": f"k{colour}", "dash": f"d{dash}"}
        for curve, (colour, dash) in zip(chart.curves, own, strict=True)
    ]
    return {
        "kind": "Chart",
        "id": name,
        "title": chart.title,
        "x_label": chart.x_label,
        "log_x": chart.log_x,
        "legend": legend,
        "has_band": any(curve.low is not None for curve in chart.curves),
        "has_error": any(curve.error is not None for curve in chart.curves),
        "picture": draw(chart, [(PALETTE[colour], dash) for colour, dash in own], alt),
        "data": Markup(_json(_data(chart, own, alt))),
        "behind": _table(_values(chart)),
    }


def _data(chart: Chart, looks: Sequence[tuple[int, int]], alt: str) -> dict[str, Any]:
    """What the script draws; curves that are read at the same steps share them."""
    grids: list[list[float | None]] = []
    curves = []
    for curve, (colour, dash) in zip(chart.curves, looks, strict=True):
        grid = _numbers(curve.x)
        if grid not in grids:
            grids.append(grid)
        curves.append(
            {
                "label": curve.label,
                "ours": curve.ours,
                "colour": colour,
                "dash": dash,
                "grid": grids.index(grid),
                "mean": _numbers(curve.mean),
                "low": None if curve.low is None else _numbers(curve.low),
                "high": None if curve.high is None else _numbers(curve.high),
                "error": None if curve.error is None else _numbers(curve.error),
            }
        )
    lines = [[label, value] for label, value in ((label, _number(value)) for label, value in chart.lines)]
    return {
        "title": chart.title,
        "alt": alt,
        "x": chart.x_label,
        "y": chart.y_label,
        "log": chart.log_x,
        "grids": grids,
        "curves": curves,
        "lines": [line for line in lines if line[1] is not None],
    }


def _number(value: float) -> float | None:
    """Six digits, as an integer where it is one; nothing where it is not finite."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{float(value):.6g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _json(data: Any) -> str:
    """JSON that cannot end the element that contains it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _values(chart: Chart) -> Table:
    """Some of the values behind a chart, in words that a table can hold."""
    steps = sorted({float(x) for curve in chart.curves for x in curve.x if math.isfinite(x)})
    if len(steps) > TABLE_ROWS:
        places = [round(number * (len(steps) - 1) / (TABLE_ROWS - 1)) for number in range(TABLE_ROWS)]
        steps = [steps[place] for place in dict.fromkeys(places)]
    columns = [curve.label for curve in chart.curves]
    at = [{float(x): place for place, x in enumerate(curve.x)} for curve in chart.curves]
    rows = []
    for step in steps:
        cells = [_cell(curve, places.get(step)) for curve, places in zip(chart.curves, at, strict=True)]
        rows.append([f"{step:,.6g}" if step < 1e15 else str(step), *cells])
    marks = "".join(f"; {label} {value:.4g}" for label, value in chart.lines)
    caption = f"{chart.y_label} of {chart.title} (mean ± standard error, 5th to 95th percentile in brackets){marks}"
    return Table(caption, [chart.x_label, *columns], rows)


def _cell(curve: said.Curve, place: int | None) -> str:
    if place is None or not math.isfinite(curve.mean[place]):
        return "–"
    text = f"{curve.mean[place]:.4g}"
    if curve.error is not None and math.isfinite(curve.error[place]):
        text += f" ± {curve.error[place]:.2g}"
    if curve.low is not None and curve.high is not None and math.isfinite(curve.low[place] + curve.high[place]):
        text += f" [{curve.low[place]:.3g}, {curve.high[place]:.3g}]"
    return text
