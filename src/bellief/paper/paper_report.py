"""The report as data: a pure function of a summary, so that it is the same whenever it is made again."""

from collections import Counter
from collections.abc import Sequence

from bellief.paper import items
from bellief.paper.claims import Judgement
from bellief.paper.figures import figures_of
from bellief.paper.items import Item
from bellief.paper.summary import Summary, judgements_of, seen_at, smaller_than_scale
from bellief.paper.tasks import MARGIN_NOTE, SEED
from bellief.plots import style
from bellief.report.document import (
    NOT_REPRODUCED,
    REPRODUCED,
    TOO_SMALL,
    UNDER_SPECIFIED,
    Chart,
    Document,
    Picture,
    Section,
    Table,
    Verdict,
)

TITLE = "Inferential induction: the paper's experiments, computed again"
# Verdicts are grouped in this order.
ORDER = (REPRODUCED, NOT_REPRODUCED, UNDER_SPECIFIED, TOO_SMALL)


def counts(judgements: Sequence[Judgement]) -> str:
    """How many claims have each verdict, in words."""
    counted = Counter(judgement.verdict for judgement in judgements)
    return f"{len(judgements)} claims: " + ", ".join(f"{counted[name]} {name}" for name in ORDER if counted[name])


def build_document(summary: Summary, chosen: Sequence[Item]) -> Document:
    """The whole report."""
    judgements = judgements_of(summary, chosen)
    told = [
        f"Scale {summary.scale}. {counts(judgements)}.",
        MARGIN_NOTE,
        "Curves marked 'ours' are not in the paper: BBI with our joint value belief and optimistic rule.",
    ]
    facts = [("scale", summary.scale), ("seed", str(SEED))]
    if summary.provenance:
        facts.append(("provenance", summary.provenance))
    if smaller := smaller_than_scale(summary):
        facts.append(("other sizes than the scale's", "; ".join(smaller)))
    verdicts = [
        Verdict(
            one.claim.item.replace(":", "-"),
            f"{one.claim.subject}: {one.claim.sentence}. The paper: {one.claim.quoted}",
            one.verdict,
            one.statistic,
            "; ".join(part for part in (seen_at(one), one.note) if part),
        )
        for name in ORDER
        for one in judgements
        if one.verdict == name
    ]
    sections = [_section(item, summary) for item in chosen]
    return Document(TITLE, told, verdicts, sections, facts)


def _section(item: Item, summary: Summary) -> Section:
    paragraphs = [item.remark] if item.remark else []
    blocks: list[Chart | Table | Picture] = []
    for chart in summary.charts.get(item.label, []):
        # Bands of many agents in one chart would hide one another; they have charts of their own.
        thin = item.kind in (items.CURVES, items.BOUNDS)
        curves = [curve._replace(low=None, high=None) if thin else curve for curve in chart.curves]
        blocks.append(chart._replace(curves=curves))
    if item.kind == items.POSTERIORS:
        for name, figure in figures_of(item, summary.charts.get(item.label, []), summary.samples).items():
            told = f"{item.title}: densities after 10, 100 and 1,000 steps, {name.rpartition('plots-')[2]} policy"
            blocks.append(Picture(item.title, told, style.to_bytes(figure, "png")))
    blocks += summary.tables.get(item.label, [])
    if not blocks and not summary.facts.get(item.label):
        paragraphs.append("Nothing of this item has been computed.")
    command = f"bellief paper --scale {summary.scale} --only {item.label}"
    return Section(
        item.stem, f"{item.label}: {item.title}", paragraphs, blocks, command, summary.facts.get(item.label, [])
    )
