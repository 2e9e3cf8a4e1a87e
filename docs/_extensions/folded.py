"""A Sphinx extension that folds long tables of the results, so that text and pictures are seen first."""

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER, MOST_ROWS = "results/", 12


def fold(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Put every table with more rows into `<details>`, with its column headings as the title."""
    if app.builder.format != "html" or not name.startswith(FOLDER):
        return
    for table in list(doctree.findall(nodes.table)):
        rows = sum(len(body.children) for body in table.findall(nodes.tbody))
        if rows > MOST_ROWS:
            heads = [entry.astext() for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)]
            title = f"Table of {rows} rows: {', '.join(head for head in heads if head)}"
            opened = nodes.raw("", f"<details><summary>{escape(title)}</summary>", format="html")
            position = table.parent.index(table)
            table.parent.insert(position, opened)
            table.parent.insert(position + 2, nodes.raw("", "</details>", format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Fold when a page is written."""
    app.connect("doctree-resolved", fold)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
