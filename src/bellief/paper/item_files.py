"""Files of an item: figures as PDF, PNG and SVG with their numbers as CSV beside, tables as CSV, Markdown and LaTeX."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bellief import files
from bellief.files import write_whole
from bellief.paper import items
from bellief.paper.computations import READINGS, SIZES
from bellief.paper.figures import figures_of
from bellief.paper.items import Item
from bellief.paper.summary import Summary
from bellief.plots import style
from bellief.report.document import Chart, Table

ENDINGS = ("pdf", "png", "svg", "csv", "md", "tex")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def write_item(item: Item, summary: Summary, folder: Path, endings: Sequence[str] = ENDINGS) -> list[Path]:
    """Write the files of an item that have one of these endings (and CSV); nothing where nothing was computed."""
    folder.mkdir(parents=True, exist_ok=True)
    charts, tables = summary.charts.get(item.label, []), summary.tables.get(item.label, [])
    written = [
        write_whole(folder / f"{name}.{ending}", style.to_bytes(figure, ending))
        for name, figure in figures_of(item, charts, summary.samples).items()
        for ending in ("pdf", "png", "svg")
        if ending in endings
    ]
    if charts:
        written.append(write_whole(folder / f"{item.stem}.csv", charts_csv(charts).encode()))
    if item.kind == items.POSTERIORS and written:
        written.append(write_whole(folder / f"{item.stem}.csv", _posterior_csv(summary.samples).encode()))
    name = item.stem if item.kind == items.DISTANCES else f"{item.stem}-table"
    if tables:
        makers = {"csv": to_csv, "md": to_markdown, "tex": to_latex}
        for ending, make in ((ending, makers[ending]) for ending in makers if ending in endings):
            content = "\n".join(make(table) for table in tables)
            written.append(write_whole(folder / f"{name}.{ending}", content.encode()))
    return written


def charts_csv(charts: Sequence[Chart]) -> str:
    """One row for each point of each curve."""
    rows: list[list[object]] = []
    for chart in charts:
        for curve in chart.curves:
            empty = [""] * len(curve.x)
            columns = (curve.x, curve.mean, curve.low or empty, curve.high or empty, curve.error or empty)
            rows += [
                [chart.title, curve.label, f"{x:g}" if x % 1 else int(x), *map(_number, rest)]
                for x, *rest in zip(*columns, strict=True)
            ]
    return _csv(["panel", "curve", "step", "mean", "p05", "p95", "standard_error"], rows)


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else str(value)


def _posterior_csv(found: Mapping[str, np.ndarray]) -> str:
    rows: list[list[object]] = []
    for reading in READINGS:
        for steps in SIZES:
            for name in ("truth", "joint", "induction", "mean"):
                for run, samples in enumerate(np.atleast_2d(found[f"{reading}/{steps}/{name}"])):
                    rows.append([reading, steps, name, run, *map(_number, np.quantile(samples, QUANTILES).tolist())])
    return _csv(["policy", "steps", "method", "run", *(f"quantile_{level}" for level in QUANTILES)], rows)


def _csv(columns: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    return files.to_csv(pd.DataFrame([[*row] for row in rows], columns=[*map(str, columns)], dtype=object)).decode()


def to_csv(table: Table) -> str:
    """A table with its caption in the first column, so that several can follow one another."""
    return _csv(["table", *table.columns], [[table.caption, *row] for row in table.rows])


def to_markdown(table: Table) -> str:
    """A table for a page."""

    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    lines = [f"{table.caption}.", "", line(table.columns), "|" + "---|" * len(table.columns), *map(line, table.rows)]
    return "\n".join(lines) + "\n"


_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "±": r"$\pm$"}


def to_latex(table: Table) -> str:
    """A table with booktabs' rules."""

    def line(cells: Sequence[object]) -> str:
        return " & ".join("".join(_LATEX.get(letter, letter) for letter in str(cell)) for cell in cells) + r" \\"

    head, *rest = line([table.caption]).removesuffix(r" \\"), line(table.columns)
    body = [r"\begin{table}", rf"\caption{{{head}}}", rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}", r"\toprule"]
    body += [*rest, r"\midrule", *map(line, table.rows), r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(body) + "\n"
