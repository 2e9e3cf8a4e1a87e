"""Summaries: everything that pictures, tables, verdicts and pages are made from, apart from the runs themselves.

A folder of stores has gigabytes of runs at full size; its summary has what was measured for each claim, the curves of
each figure and the rows of each table, with sizes and dates, in a few hundred kilobytes. The report, the pages of the
documentation and the README are functions of a summary. The one that travels with the package is what was computed at
full size.

>>> from bellief.paper import summary
>>> full = summary.published()
>>> full.scale, full.measured["fig:full_chain | NChain | BBI performs similarly to PSRL"].size.runs
('full', 50)
"""

import functools
import gzip
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bellief.errors import UserError
from bellief.files import write_whole
from bellief.paper.charts import charts_of, tables_of
from bellief.paper.claims import Judgement, Measured, judge_measured, unmeasured
from bellief.paper.computed_results import Folder, Missing, Results
from bellief.paper.facts import facts_of, sizes_of
from bellief.paper.items import ITEMS, POSTERIORS, Item
from bellief.paper.readings import keep, results_of
from bellief.paper.tasks import TASKS, Size, size_of
from bellief.plots.statistics import Estimate
from bellief.report.document import Chart, Curve, Table

VERSION = 1
NAME = "summary.json.gz"
# Curves are drawn from at most so many points, and densities from so many quantiles.
POINTS, QUANTILES = 150, 200


class Summary(NamedTuple):
    """`measured` by a claim's key, `missing` why a claim has none; `charts`, `tables` and `facts` by an item's label;
    `samples` are quantiles of the value posteriors; `sizes` by sweep and agent, what was computed. `provenance` tells
    what dates and sizes do not: which numbers can be computed again only from the beginning.
    """

    scale: str
    measured: Mapping[str, Measured]
    missing: Mapping[str, str]
    charts: Mapping[str, list[Chart]]
    tables: Mapping[str, list[Table]]
    facts: Mapping[str, list[tuple[str, str]]]
    samples: Mapping[str, np.ndarray]
    sizes: Mapping[str, Mapping[str, Size]]
    provenance: str = ""


def summarise(folder: Folder, scale: str, readings: Results | None = None) -> Summary:
    """The summary of a folder of stores and computations. Claims and tables are made from its readings."""
    results = folder.results()
    readings = readings or results_of(keep(results))
    measured: dict[str, Measured] = {}
    missing: dict[str, str] = {}
    for claim in (claim for item in ITEMS.values() for claim in item.claims):
        try:
            measured[claim.key] = claim.test.measure(readings)
        except Missing as error:
            missing[claim.key] = str(error)
    every = list(ITEMS.values())
    return Summary(
        scale,
        measured,
        missing,
        {item.label: [_thin(chart) for chart in charts_of(item, results)] for item in every},
        {item.label: tables_of(item, readings) for item in every},
        {item.label: facts_of(item, folder) for item in every},
        _posterior_samples(folder),
        {sweep: sizes_of(folder, sweep) for sweep in TASKS},
    )


def _thin(chart: Chart) -> Chart:
    return chart._replace(curves=[_thin_curve(curve) for curve in chart.curves])


def _thin_curve(curve: Curve) -> Curve:
    x = np.asarray(curve.x, float)
    wanted = np.geomspace(max(x[0], 1.0), max(x[-1], 1.0), POINTS)
    kept = np.unique([0, *np.clip(np.searchsorted(x, wanted), 0, len(x) - 1), len(x) - 1])

    def part(values: Any) -> list[float] | None:
        return None if values is None else [float(f"{value:.6g}") for value in np.asarray(values, float)[kept]]

    steps, means = part(curve.x) or [], part(curve.mean) or []
    return Curve(curve.label, steps, means, part(curve.low), part(curve.high), part(curve.error), curve.ours)


def _posterior_samples(folder: Folder) -> dict[str, np.ndarray]:
    try:
        found = folder.computed("posteriors")
    except Missing:
        return {}
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return {
        name: np.quantile(values, levels, axis=-1).T if values.shape[-1] > 1 else values
        for name, values in found.items()
        if values.dtype.kind == "f"
    }


# Verdicts


def judgements_of(summary: Summary, chosen: Sequence[Item] | None = None) -> list[Judgement]:
    """The verdicts on all claims of some items, or of all.

    >>> from bellief.paper.summary import judgements_of, published
    >>> len(judgements_of(published())) > 80
    True
    """
    found = []
    for claim in (claim for item in chosen or ITEMS.values() for claim in item.claims):
        if claim.key in summary.measured:
            found.append(judge_measured(claim, summary.measured[claim.key]))
        else:
            found.append(unmeasured(claim, summary.missing.get(claim.key, "not part of this summary")))
    return found


def seen_at(judgement: Judgement) -> str:
    """The size in words."""
    size = judgement.size
    return "" if size is None else f"{size.runs:,} x {size.steps:,} steps"


def smaller_than_scale(summary: Summary) -> list[str]:
    """What was computed at another size than the scale's, in words."""
    found: dict[tuple[str, Size, Size], list[str]] = {}
    for sweep, agents in summary.sizes.items():
        for agent, size in agents.items():
            wanted = size_of(sweep, agent, summary.scale) if agent in TASKS[sweep].agents else None
            if wanted is not None and size != wanted:
                found.setdefault((sweep, size, wanted), []).append(agent)
    return [
        f"{TASKS[sweep].title} ({', '.join(agents)}) {size.runs:,} x {size.steps:,} instead of "
        f"{wanted.runs:,} x {wanted.steps:,}"
        for (sweep, size, wanted), agents in found.items()
    ]


# Files


def to_bytes(summary: Summary) -> bytes:
    """A compressed JSON document; equal summaries give equal bytes."""
    document = {
        "version": VERSION,
        "scale": summary.scale,
        "measured": {
            key: {
                "estimates": {name: list(estimate) for name, estimate in one.estimates.items()},
                "size": list(one.size),
                "ours": None if one.ours is None else list(one.ours),
            }
            for key, one in summary.measured.items()
        },
        "missing": dict(summary.missing),
        "charts": {label: [_chart_out(chart) for chart in charts] for label, charts in summary.charts.items()},
        "tables": {label: [table._asdict() for table in tables] for label, tables in summary.tables.items()},
        "facts": {label: [list(pair) for pair in pairs] for label, pairs in summary.facts.items()},
        "samples": {
            name: [[float(f"{value:.5g}") for value in row] for row in np.atleast_2d(values)]
            for name, values in summary.samples.items()
        },
        "sizes": {
            sweep: {agent: list(size) for agent, size in agents.items()} for sweep, agents in summary.sizes.items()
        },
        "provenance": summary.provenance,
    }
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def _chart_out(chart: Chart) -> dict[str, Any]:
    return {**chart._asdict(), "curves": [curve._asdict() for curve in chart.curves]}


def from_bytes(content: bytes, source: str = "the summary") -> Summary:
    """A summary from its file."""
    try:
        told = json.loads(gzip.decompress(content))
        if told["version"] != VERSION:
            raise UserError(f"{source} has version {told['version']}; this Bellief reads version {VERSION}.")
        return _read(told)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{source} is no summary of 'bellief paper' ({error}).") from error


def _read(told: dict[str, Any]) -> Summary:
    measured = {
        key: Measured(
            {name: Estimate(*numbers) for name, numbers in one["estimates"].items()},
            Size(*one["size"]),
            None if one["ours"] is None else Estimate(*one["ours"]),
        )
        for key, one in told["measured"].items()
    }
    charts = {
        label: [
            Chart(
                **{
                    **one,
                    "curves": [Curve(**curve) for curve in one["curves"]],
                    "lines": [(name, height) for name, height in one["lines"]],
                }
            )
            for one in rows
        ]
        for label, rows in told["charts"].items()
    }
    samples = {name: np.array(rows) for name, rows in told["samples"].items()}
    return Summary(
        told["scale"],
        measured,
        told["missing"],
        charts,
        {label: [Table(**one) for one in rows] for label, rows in told["tables"].items()},
        {label: [(name, value) for name, value in pairs] for label, pairs in told["facts"].items()},
        {name: rows if name.endswith("/induction") else rows[0] for name, rows in samples.items()},
        {sweep: {agent: Size(*size) for agent, size in agents.items()} for sweep, agents in told["sizes"].items()},
        told.get("provenance", ""),
    )


def write(summary: Summary, path: Path) -> Path:
    """Write a summary's file."""
    return write_whole(path, to_bytes(summary))


@functools.cache
def published() -> Summary:
    """What was computed at full size, as it travels with the package."""
    file = resources.files("bellief.paper").joinpath("data", NAME)
    return from_bytes(file.read_bytes(), "the package's summary")


def merge(first: Summary, second: Summary) -> Summary:
    """The first summary, and from the second what the first has nothing of."""

    def filled(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **{key: value for key, value in one.items() if len(value) or key not in other}}

    measured = filled(first.measured, second.measured)
    missing = {key: why for key, why in filled(first.missing, second.missing).items() if key not in measured}
    return Summary(
        first.scale,
        measured,
        missing,
        filled(first.charts, second.charts),
        filled(first.tables, second.tables),
        filled(first.facts, second.facts),
        filled(first.samples, second.samples),
        filled(first.sizes, second.sizes),
        " ".join(part for part in dict.fromkeys((first.provenance, second.provenance)) if part),
    )


def is_drawn(item: Item, summary: Summary) -> bool:
    """Whether an item has a picture."""
    return bool(summary.samples) if item.kind == POSTERIORS else bool(summary.charts.get(item.label))
