"""How a document becomes one self-contained HTML file without a script.

All text is plain text and is escaped by the template; pictures travel inside the page.
"""

import base64
from typing import TYPE_CHECKING

from bellief.plots.style import to_bytes
from bellief.report.document import Document

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure


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


def render(page: Document) -> str:
    """The page as one HTML document: sections with pictures and tables; charts and verdicts need a script."""
    return get_template("plain.html").render(page=page)
