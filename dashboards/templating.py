"""Template names and values in, HTML out; every value is escaped but what is marked as markup."""

from __future__ import annotations

import functools
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dashboards import theme


@functools.cache
def _environment() -> Environment:
    made = Environment(loader=PackageLoader("dashboards"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["count"] = theme.count
    made.filters["shown"] = theme.shown
    made.filters["upfirst"] = theme.upfirst
    made.filters["percent"] = theme.percent
    made.filters["size"] = theme.size
    return made


def render(template: str, **values: Any) -> str:
    """The template filled in. Raises jinja2.UndefinedError for a name it was not given."""
    return _environment().get_template(template).render(**values)
