"""Sphinx configuration. Neither the build nor the pages read anything from the network."""

from importlib.metadata import version as installed_version

project = "Bellief"
author = "The Bellief developers"
copyright = "2026, The Bellief developers"
release = installed_version("bellief")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_parser",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # autosummary writes .rst
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Docstrings are written in Markdown's habit: single backticks are code.
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "Bellief"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"**": ["globaltoc.html"]}
html_theme_options = {
    "navbar_center": [],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
}
