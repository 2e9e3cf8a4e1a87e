"""The results as pages of the documentation: pictures, numbers and verdicts, made from a summary by one command."""

import re
from collections.abc import Sequence
from pathlib import Path

from bellief.errors import UserError
from bellief.files import write_whole
from bellief.paper import items
from bellief.paper.claims import Judgement, Measured, plain
from bellief.paper.item_files import to_markdown, write_item
from bellief.paper.items import ITEMS, Item
from bellief.paper.paper_report import ORDER, counts
from bellief.paper.sentences import sentences_page
from bellief.paper.summary import Summary, is_drawn, judgements_of, seen_at, smaller_than_scale
from bellief.paper.tasks import MARGIN_NOTE
from bellief.report.document import Table

BEGIN, END = "<!-- verdicts of bellief paper -->", "<!-- end of verdicts -->"
SHORT_BEGIN, SHORT_END = "<!-- verdict table: begin -->", "<!-- verdict table: end -->"


def write_pages(summary: Summary, docs: Path) -> list[Path]:
    """Write `index.md`, `sentences.md`, PNG and CSV files into a folder; whatever else is in it is left alone."""
    docs.mkdir(parents=True, exist_ok=True)
    written = []
    for item in ITEMS.values():
        written += write_item(item, summary, docs, endings=("png", "csv"))
    written.append(write_whole(docs / "index.md", index_page(summary).encode()))
    written.append(write_whole(docs / "sentences.md", sentences_page(judgements_of(summary)).encode()))
    return written


def verdict_matrix(judgements: Sequence[Judgement]) -> str:
    """One row for each claim, with the tasks by verdict."""
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in judgements:
        group = group_of(one.claim.item)
        verdicts = rows.setdefault((group, one.claim.sentence), {name: [] for name in ORDER})
        verdicts[one.verdict].append(one.claim.subject)
    table = [
        [sentence, *("; ".join(found[name]) for name in ORDER)]
        for (_, sentence), found in sorted(rows.items(), key=lambda row: list(_GROUPS).index(row[0][0]))
    ]
    text = to_markdown(Table("What the paper says", ["claim", *ORDER], table))
    return text.partition("\n\n")[2]


_GROUPS = {
    "discrete": ("fig:full_",),
    "spread": ("fig:ci_",),
    "continuous": ("fig:linear_model", "fig:inverted_pendulum"),
    "value": ("fig:bayes_bounds", "fig:posterior_plots", "tab:wasserstein"),
    "settings": ("fig:chainhorizon", "fig:mazehorizon", "sec:"),
}


def group_of(label: str) -> str:
    """The group of items that a label belongs to."""
    return next(group for group, starts in _GROUPS.items() if label.startswith(starts))


def index_page(summary: Summary) -> str:
    """The page: the verdicts in short, then every item with its picture, and folded its numbers and claims."""
    judgements = judgements_of(summary)
    parts = [
        "# The paper's experiments, computed again",
        "",
        f"{origin(summary)} {counts(judgements)}; also [sentence by sentence](sentences.md). This page and the "
        "table in the README are made from the summary that is part of the package, by "
        "`bellief paper --docs docs/paper --readme README.md`. [The guide](../guides/paper.md) explains the verdicts "
        "and how the results are computed.",
        "",
        f"{MARGIN_NOTE} Curves and numbers called ours are not in the paper.",
        "",
    ]
    if summary.provenance:
        parts += [summary.provenance, ""]
    if smaller := smaller_than_scale(summary):
        parts += [f"Computed at other sizes than the scale's: {'; '.join(smaller)}.", ""]
    parts += ["## Verdicts", "", verdict_matrix(judgements)]
    for item in ITEMS.values():
        parts += _item_section(item, [one for one in judgements if one.claim.item == item.label], summary)
    return "\n".join(parts).rstrip() + "\n"


def _item_section(item: Item, judgements: Sequence[Judgement], summary: Summary) -> list[str]:
    lines = [f"## {item.title}", "", f"The paper's `{item.label}`. {item.remark}".strip(), ""]
    facts = summary.facts.get(item.label, [])
    if not facts:
        return [*lines, "Not computed at this scale.", ""]
    names = [item.stem]
    if item.kind == items.POSTERIORS:
        names = [f"{item.stem}-back-heavy", f"{item.stem}-forward-heavy"]
    if is_drawn(item, summary):
        lines += [f"![{item.title}]({name}.png)\n" for name in names]
    tables = [to_markdown(table) for table in summary.tables.get(item.label, [])]
    rows = [
        [one.claim.subject, one.claim.sentence, one.verdict, one.statistic, seen_at(one), one.note]
        for one in judgements
    ]
    head = ["task", "claim", "verdict", "statistic", "seen at", "note"]
    quotes = dict.fromkeys(str(one.claim.quoted) for one in judgements)
    claims = [
        to_markdown(Table("Claims", head, rows)),
        f"The paper says: {' '.join(quotes)}\n",
        "; ".join(f"{name}: {value}" for name, value in facts) + ".\n",
    ]
    if is_drawn(item, summary) and tables:
        return [*lines, *_folded("Numbers", tables), *_folded("Claims, sizes and versions", claims)]
    return [*lines, *tables, *_folded("Claims, sizes and versions", claims)]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "</details>", ""]


def origin(summary: Summary) -> str:
    """Scale and days in a sentence."""
    days = sorted(
        {
            day
            for facts in summary.facts.values()
            for name, value in facts
            if name == "computed on"
            for day in value.split(" to ")
        }
    )
    when = "" if not days else f", computed on {days[0]}" if len(days) == 1 else f", computed {days[0]} to {days[-1]}"
    return f"Scale `{summary.scale}`{when}; the size that each claim was judged at is told beside it."


# The README


def short_table(summary: Summary) -> str:
    """The README's short answers, from the same numbers."""
    measured, rows = summary.measured, []
    verdicts = {one.claim.key: one.verdict for one in judgements_of(summary)}
    rewards = _rewards(summary, "fig:full_chain")
    if rewards:
        verdict = verdicts["fig:full_chain | NChain | BBI performs similarly to PSRL"]
        told = ", ".join(f"{agent} {rewards[agent]}" for agent in ("BBI", "PSRL", "MMBI") if agent in rewards)
        rows.append(
            ["BBI performs similarly to MMBI and PSRL, on NChain", f"{verdict}: {told} a step in the last half"]
        )
    if _CAPTURES in measured:
        told = f"{verdicts[_CAPTURES]}: {_spread_told(measured[_CAPTURES])}"
        rows.append(["Algorithm 2 reasonably captures the uncertainty of the true distribution", told])
    if _MUCH_BETTER in measured:
        told = f"{verdicts[_MUCH_BETTER]}: {_pendulum_told(measured[_MUCH_BETTER])}"
        rows.append(["BBI performs much better than GPTD, on the pendulum", told])
    lines = ["| the paper says | here |", "|---|---|", *(f"| {one} | {other} |" for one, other in rows)]
    return "\n".join(lines)


_CAPTURES = (
    "fig:posterior_plots | NChain, back-heavy | Induction reasonably captures the uncertainty of the true distribution"
)
_MUCH_BETTER = "fig:inverted_pendulum | InvertedPendulum | BBI performs much better than GPTD"


def _rewards(summary: Summary, label: str) -> dict[str, str]:
    tables = summary.tables.get(label, [])
    return {} if not tables else {str(row[0]): str(row[3]) for row in tables[0].rows}


def _spread_told(found: Measured) -> str:
    ratios = ", ".join(f"{100 * one.value:.0f}%" for one in found.estimates.values())
    ours = "" if found.ours is None else f"; joint with the MDP {100 * found.ours.value:.0f}% in the median"
    return f"a spread of {ratios} of the true one after 10, 100 and 1,000 steps ([why](docs/collapse.md)){ours}"


def _pendulum_told(found: Measured) -> str:
    low, high = min(one.value for one in found.estimates.values()), max(one.value for one in found.estimates.values())
    ours = "" if found.ours is None else f"; with our changes {plain(found.ours)} times"
    return f"{low:.2g} to {high:.2g} times GPTD's steps survived, by the choice of q(s), which is not printed{ours}"


def fill_readme(summary: Summary, readme: Path) -> Path:
    """Put the short tables between the marks of a README."""
    try:
        text = readme.read_text()
    except OSError as error:
        raise UserError(f"--readme: {readme} cannot be read ({error.strerror}).") from error
    return write_whole(readme, filled_readme(summary, text, str(readme)).encode())


def filled_readme(summary: Summary, text: str, name: str = "README.md") -> str:
    """A README's text with what belongs between its marks: the short table, the long one, or both."""
    wanted = {
        (SHORT_BEGIN, SHORT_END): short_table(summary),
        (BEGIN, END): f"\n{origin(summary)}\n\n{verdict_matrix(judgements_of(summary)).strip()}\n",
    }
    found = {marks: table for marks, table in wanted.items() if all(mark in text for mark in marks)}
    if not found:
        raise UserError(f"{name} has no place for verdicts: put '{SHORT_BEGIN}' and '{SHORT_END}' into it.")
    for (begin, end), table in found.items():
        text = _between(text, begin, end, f"{begin}\n{table}\n{end}")
    return text


def _between(text: str, begin: str, end: str, new: str) -> str:
    return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda found: new, text, flags=re.DOTALL)
