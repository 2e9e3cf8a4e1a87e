"""How a document becomes one self-contained HTML file without a script.

All text is plain text and is escaped by the template; pictures travel inside the page.
"""

import base64
from typing import Any

from bellief.plots.html_templates import get_template
from bellief.plots.style import to_bytes
from bellief.report.document import Document


def embed(figure: Any) -> str:
    """A figure as an address that holds the picture itself, its ground transparent."""
    return "data:image/svg+xml;base64," + base64.b64encode(to_bytes(figure, "svg", transparent=True)).decode()


def render(page: Document) -> str:
    """The page as one HTML document: sections with pictures and tables; charts and verdicts need a script."""
    return get_template("bellief.report", "plain.html").render(page=page)
