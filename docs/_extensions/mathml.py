"""A Sphinx extension that writes formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# The glyph of a prime is raised already; as a superscript it would be too small to read.
_PRIME = re.compile(r"<msup>(<mi>\w+</mi>)<mi>&#x02032;</mi></msup>")
_RAISED = r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>'


def mathml(latex: str, display: str) -> str:
    """A formula as MathML. The converter knows `align*` where Markdown elsewhere wants `aligned`."""
    return _PRIME.sub(_RAISED, convert(latex.replace("{aligned}", "{align*}"), display=display))


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math-block">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer `mathml`, for `html_math_renderer`."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
