"""Sphinx configuration. Neither the build nor the pages read anything from the network."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from pygments.lexers.special import TextLexer

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "Bellief"
author = "The Bellief developers"
copyright = "2026, The Bellief developers"
release = installed_version("bellief")
version = release

extensions = [
    "folded",
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # autosummary writes .rst
exclude_patterns = ["_build", "_templates", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Docstrings are written in Markdown's habit: single backticks are code.
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_digits = False
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "Bellief"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"index": [], "**": ["sidebar-nav-bs"]}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}


def readable_signature(app, what, name, obj, options, signature, returns):
    """Sphinx cannot parse a dataclass's `<factory>`, and then shows every name with its modules."""
    return signature and signature.replace("<factory>", "..."), returns


def setup(app):
    """What a code block prints stands below it in a block called `output` (tools/doc_outputs.py)."""
    app.add_lexer("output", TextLexer)
    app.connect("autodoc-process-signature", readable_signature)
