"""The results as pages of the documentation: verdicts, pictures and numbers, made from a folder by one command."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bellief.errors import UserError
from bellief.files import write_whole
from bellief.paper import items
from bellief.paper.charts import tables_of
from bellief.paper.claims import Judgement
from bellief.paper.document import facts_of, judgements_of, seen_at
from bellief.paper.files import to_markdown, write_item
from bellief.paper.items import ITEMS, Item
from bellief.paper.results import Folder, Results
from bellief.paper.tasks import MARGIN_NOTE
from bellief.report.document import NOT_REPRODUCED, REPRODUCED, TOO_SMALL, UNDER_SPECIFIED, Table

ORDER = (REPRODUCED, NOT_REPRODUCED, UNDER_SPECIFIED, TOO_SMALL)
BEGIN, END = "<!-- verdicts of bellief paper -->", "<!-- end of verdicts -->"


def write_pages(request: Any, docs: Path) -> list[Path]:
    """Write `index.md`, PNG and CSV files into a folder; whatever else is in it is left alone."""
    folder = Folder(request.folder)
    results = folder.results()
    docs.mkdir(parents=True, exist_ok=True)
    written = []
    for item in ITEMS.values():
        written += write_item(item, results, docs, endings=("png", "csv"))
    judgements = judgements_of(list(ITEMS.values()), results)
    page = index_page(judgements, results, folder, request.scale, docs)
    written.append(write_whole(docs / "index.md", page.encode()))
    return written


def verdict_matrix(judgements: Sequence[Judgement]) -> str:
    """One row for each sentence, with the tasks by verdict: short enough for a README."""
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in judgements:
        group = items_of(one.claim.item)
        verdicts = rows.setdefault((group, one.claim.sentence), {name: [] for name in ORDER})
        verdicts[one.verdict].append(one.claim.subject)
    table = [
        [sentence, *("; ".join(found[name]) for name in ORDER)]
        for (_, sentence), found in sorted(rows.items(), key=lambda row: list(_GROUPS).index(row[0][0]))
    ]
    text = to_markdown(Table("What the paper says", ["the paper says", *ORDER], table))
    return text.partition("\n\n")[2]


_GROUPS = {
    "discrete": ("fig:full_",),
    "spread": ("fig:ci_",),
    "continuous": ("fig:linear_model", "fig:inverted_pendulum"),
    "value": ("fig:bayes_bounds", "fig:posterior_plots", "tab:wasserstein"),
    "settings": ("fig:chainhorizon", "fig:mazehorizon", "sec:"),
}


def items_of(label: str) -> str:
    """The group of items that a label belongs to."""
    return next(group for group, starts in _GROUPS.items() if label.startswith(starts))


def index_page(judgements: Sequence[Judgement], results: Results, folder: Folder, scale: str, docs: Path) -> str:
    """The page: verdicts in short, every item with its picture, table and claims."""
    parts = [
        "# The paper's experiments, computed again",
        "",
        f"{origin(folder, scale)} Made by `bellief paper --scale {scale} --docs docs/paper`; how to repeat it "
        "and what the verdicts mean is told in [the guide](../guides/paper.md).",
        "",
        f"{MARGIN_NOTE} Curves and numbers called ours are not in the paper.",
        "",
        "## Verdicts",
        "",
        verdict_matrix(judgements),
    ]
    for item in ITEMS.values():
        parts += _item_section(item, [one for one in judgements if one.claim.item == item.label], results, folder, docs)
    return "\n".join(parts).rstrip() + "\n"


def _item_section(
    item: Item, judgements: Sequence[Judgement], results: Results, folder: Folder, docs: Path
) -> list[str]:
    lines = [f"## {item.label}", "", f"{item.title}. {item.remark}".strip(), ""]
    names = [item.stem]
    if item.kind == items.POSTERIORS:
        names = [f"{item.stem}-back-heavy", f"{item.stem}-forward-heavy"]
    facts = facts_of(item, folder)
    if not facts:
        return [*lines, "Not computed at this scale.", ""]
    lines += [f"![{item.title}]({name}.png)\n" for name in names if (docs / f"{name}.png").exists()]
    for table in tables_of(item, results):
        lines += [to_markdown(table)]
    rows = [
        [one.claim.subject, one.claim.sentence, one.verdict, one.statistic, seen_at(one), one.note]
        for one in judgements
    ]
    if rows:
        head = ["task", "claim", "verdict", "statistic", "seen at", "note"]
        lines += [to_markdown(Table("Claims", head, rows))]
    lines += ["; ".join(f"{name}: {value}" for name, value in facts) + ".", ""]
    return lines


def origin(folder: Folder, scale: str) -> str:
    """Scale and days in a sentence."""
    days = sorted(
        {
            day
            for item in ITEMS.values()
            for name, value in facts_of(item, folder)
            if name == "computed on"
            for day in value.split(" to ")
        }
    )
    when = "" if not days else f", computed on {days[0]}" if len(days) == 1 else f", computed {days[0]} to {days[-1]}"
    return f"Scale `{scale}`{when}; the size that each claim was judged at is told beside it."


def fill_readme(request: Any, readme: Path) -> Path:
    """Put the short table of verdicts between the marks of a README, with a line that says scale and date."""
    try:
        text = readme.read_text()
    except OSError as error:
        raise UserError(f"--readme: {readme} cannot be read ({error.strerror}).") from error
    if BEGIN not in text or END not in text:
        raise UserError(f"{readme} has no place for verdicts: put '{BEGIN}' and '{END}' into it.")
    folder = Folder(request.folder)
    judgements = judgements_of(list(ITEMS.values()), folder.results())
    table = f"{BEGIN}\n\n{origin(folder, request.scale)}\n\n{verdict_matrix(judgements).strip()}\n\n{END}"
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return write_whole(readme, re.sub(pattern, lambda found: table, text, flags=re.DOTALL).encode())
