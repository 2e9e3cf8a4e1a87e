"""The content of a report without its layout: plain data that `bellief.report.interactive` turns into one page with
charts to explore, and `bellief.report.build` into a plain one without a script.

Everything is text, numbers and bytes. Text is shown as it is, never as markup.

>>> from bellief.report import document
>>> curve = document.Curve("PSRL", x=[1, 10], mean=[0.5, 3.6])
>>> chart = document.Chart("Reward", "step", "reward", [curve])
>>> table = document.Table("Means", ["agent", "mean"], [["PSRL", 3.6]])
>>> picture = document.Picture("Curve", "A curve that rises.", b"the bytes of a PNG")
>>> section = document.Section("chain", "NChain", ["A few words."], [chart, table, picture])
>>> said = document.Verdict("chain", "It learns", "reproduced", "3.6", "")
>>> document.Document("A report", ["What it says."], [said], [section]).sections[0].title
'NChain'
"""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from numpy import ndarray

# A verdict says one of these; others are shown too, without a sign of their own.
REPRODUCED, NOT_REPRODUCED, UNDER_SPECIFIED, TOO_SMALL = (
    "reproduced",
    "not reproduced",
    "under-specified",
    "too small to judge",
)


class Curve(NamedTuple):
    """One line of a chart. `low` and `high` bound a percentile band, `error` is the standard error of `mean`; `ours`
    marks a curve that the paper does not have. Numbers that are not finite leave a gap.
    """

    label: str
    x: "Sequence[float] | ndarray"
    mean: "Sequence[float] | ndarray"
    low: "Sequence[float] | ndarray | None" = None
    high: "Sequence[float] | ndarray | None" = None
    error: "Sequence[float] | ndarray | None" = None
    ours: bool = False


class Chart(NamedTuple):
    """Curves over one axis. `lines` are level marks, (label, y), such as an optimum or a bound."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    log_x: bool = False
    lines: Sequence[tuple[str, float]] = ()


class Table(NamedTuple):
    """A table; cells are shown as `str` gives them, and those that begin like a number are set to the right. `notes`
    stand below; plain pages also link `files`.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    files: Sequence[str] = ()


class Picture(NamedTuple):
    """A picture with its alternative text: the bytes of a PNG, or an address that holds the picture itself.

    `narrow` is the address of the same picture drawn for a phone, `files` are linked; plain pages show them.
    """

    title: str
    alt: str
    png: bytes = b""
    address: str = ""
    narrow: str = ""
    files: Sequence[str] = ()

    def source(self) -> str:
        """The address."""
        return self.address or "data:image/png;base64," + base64.b64encode(self.png).decode()


class Verdict(NamedTuple):
    """The result of checking one claim. `item` is the anchor of the section that it belongs to, or just a name."""

    item: str
    claim: str
    verdict: str
    statistic: str
    note: str


class Section(NamedTuple):
    """One item: text, blocks (`Chart`, `Table`, `Picture`), the command that made it, and (name, value) facts."""

    anchor: str
    title: str
    paragraphs: Sequence[str]
    blocks: Sequence[Chart | Table | Picture]
    command: str = ""
    facts: Sequence[tuple[str, str]] = ()


class Document(NamedTuple):
    """A whole report. Plain pages show `commands`, (words, something to type), and a `footer` of their own."""

    title: str
    summary: Sequence[str]
    verdicts: Sequence[Verdict]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()
    commands: Sequence[tuple[str, str]] = ()
    footer: str = ""
