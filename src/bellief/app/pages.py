"""The one page, from its templates. Everything that comes from data is filled in by scripts, as text."""

from functools import cache
from pathlib import Path

from bellief.logs.examples import EXAMPLES


@cache
def render_page() -> str:
    """The page as HTML."""
    import jinja2

    from bellief import __version__
    from bellief.app.experiment_choices import choices

    folder = Path(__file__).parent / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    page = environment.get_template("page.html")
    return page.render(version=__version__, examples=list(EXAMPLES.values()), **choices())
