"""What a page consists of, and how it becomes one self-contained HTML file.

Everything in these classes is plain text and is escaped by the template; pictures travel inside the page.
"""

import base64
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bellief.plots.style import to_bytes

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Picture:
    """An image with a text for those who cannot see it; `narrow` is the same picture drawn for a phone."""

    address: str
    alternative: str
    caption: str
    narrow: str | None = None
    files: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of text under a heading each; `notes` stand below, `files` are linked."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    files: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Section:
    """A heading, paragraphs, then pictures, then tables."""

    title: str
    paragraphs: Sequence[str]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


@dataclasses.dataclass(frozen=True)
class Page:
    """A whole page. `commands` are shown as something to type; `footer` says how the page came to be."""

    title: str
    lead: str
    sections: Sequence[Section]
    commands: Sequence[tuple[str, str]] = ()
    footer: str = ""


def embed(figure: "Figure") -> str:
    """A figure as an address that holds the picture itself, its ground transparent."""
    return "data:image/svg+xml;base64," + base64.b64encode(to_bytes(figure, "svg", transparent=True)).decode()


def get_template(name: str) -> "Template":
    """A template that escapes everything and refuses names it does not know."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bellief.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def render(page: Page, template: str = "demo.html") -> str:
    """The page as one HTML document."""
    return get_template(template).render(page=page)
