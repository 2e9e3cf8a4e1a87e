"""Templates of pages and cards; Jinja is imported when the first one is needed."""

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


@functools.cache
def get_template(package: str, name: str) -> "Template":
    """A template of a package, which escapes everything and refuses names it does not know."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
