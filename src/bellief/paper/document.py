"""The report as data: a pure function of what lies in the folder, so that it is the same whenever it is made again."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bellief.paper import items
from bellief.paper.charts import charts_of, tables_of
from bellief.paper.claims import Judgement, judge
from bellief.paper.figures import figures_of
from bellief.paper.items import Item
from bellief.paper.results import Folder, Missing, Results
from bellief.paper.tasks import MARGIN_NOTE, SEED, TASKS
from bellief.plots import style
from bellief.report.document import Chart, Document, Picture, Section, Table, Verdict

TITLE = "Inferential induction: the paper's experiments, computed again"


def judgements_of(chosen: Sequence[Item], results: Results) -> list[Judgement]:
    """The verdicts on all claims of some items."""
    return [judge(claim, results) for item in chosen for claim in item.claims]


def seen_at(judgement: Judgement) -> str:
    """The size in words."""
    size = judgement.size
    return "" if size is None else f"{size.runs:,} x {size.steps:,} steps"


def build_document(
    folder: Folder, scale: str, chosen: Sequence[Item], judgements: Sequence[Judgement] | None = None
) -> Document:
    """The whole report; `judgements` are those of the items, where they are known already."""
    results = folder.results()
    judgements = judgements_of(chosen, results) if judgements is None else judgements
    counted = Counter(judgement.verdict for judgement in judgements)
    summary = [
        f"Scale {scale}. Of {len(judgements)} claims, "
        + ", ".join(f"{counted[name]} {name}" for name in counted)
        + ".",
        MARGIN_NOTE,
        "Curves marked 'ours' are not in the paper: BBI with our joint value belief and optimistic rule.",
    ]
    verdicts = [
        Verdict(
            one.claim.item.replace(":", "-"),
            f"{one.claim.subject}: {one.claim.sentence}",
            one.verdict,
            one.statistic,
            "; ".join(part for part in (seen_at(one), one.note) if part),
        )
        for one in judgements
    ]
    sections = [_section(item, folder, results, scale) for item in chosen]
    return Document(TITLE, summary, verdicts, sections, [("scale", scale), ("seed", str(SEED))])


def _section(item: Item, folder: Folder, results: Results, scale: str) -> Section:
    paragraphs = [item.remark] if item.remark else []
    blocks: list[Chart | Table | Picture] = []
    for chart in charts_of(item, results):
        # Bands of many agents in one chart would hide one another; they have charts of their own.
        thin = item.kind in (items.CURVES, items.BOUNDS)
        curves = [curve._replace(low=None, high=None) if thin else curve for curve in chart.curves]
        blocks.append(chart._replace(curves=curves))
    if item.kind == items.POSTERIORS:
        for name, figure in figures_of(item, results).items():
            told = f"{item.title}: densities after 10, 100 and 1,000 steps, {name.rpartition('plots-')[2]} policy"
            blocks.append(Picture(item.title, told, style.to_bytes(figure, "png")))
    blocks += tables_of(item, results)
    if not blocks:
        paragraphs.append("Nothing of this item has been computed.")
    command = f"bellief paper --scale {scale} --only {item.label}"
    return Section(item.stem, f"{item.label}: {item.title}", paragraphs, blocks, command, facts_of(item, folder))


def facts_of(item: Item, folder: Folder) -> list[tuple[str, str]]:
    """Sizes, dates, versions and computing time of what an item stands on."""
    facts: list[tuple[str, str]] = []
    for sweep in item.sweeps:
        if sweep in folder.stores:
            facts += _sweep_facts(sweep, folder.stores[sweep])
    for name in item.computations:
        try:
            found = folder.computed(name)
        except Missing:
            continue
        settings = json.loads(str(found["settings"]))
        facts.append((name, ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in settings.items())))
        if "day" in found:
            facts.append(("computed on", str(found["day"])))
    return facts


def _sweep_facts(sweep: str, store: Any) -> list[tuple[str, str]]:
    records = [store.store.record(cell.id) for condition in store for cell in condition.cells]
    sizes = Counter((condition.runs, condition.steps) for condition in store if condition.cells)
    facts = [(f"{TASKS[sweep].title}, sizes", ", ".join(f"{runs:,} runs x {steps:,} steps" for runs, steps in sizes))]
    cells = sum(len(condition.setup.cells) for condition in store)
    if len(records) < cells:
        facts.append(("not finished", f"{cells - len(records)} of {cells} cells"))
    if records:
        seconds = sum(record.get("seconds", 0.0) for record in records)
        days = sorted({record["finished"][:10] for record in records})
        facts += [("seed", str(store.spec.seed)), ("computing time", _duration(seconds))]
        facts.append(("computed on", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"))
        made = [one for record in records for one in record.get("made", [])]
        for name in ("bellief", "jax", "backend", "device"):
            versions = sorted({str(one[name]) for one in made if one.get(name)})
            if versions:
                facts.append((name, ", ".join(versions)))
    return facts


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
