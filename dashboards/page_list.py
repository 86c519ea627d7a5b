"""The folder `pages/` in, the pages of the server out: each module with a `PAGE` is one."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from dashboards import pages
from dashboards.page import Page


class UnknownPageError(KeyError):
    """No page with figures has this word in its addresses; says which have."""


@functools.cache
def found() -> tuple[Page, ...]:
    """Every page, in the order of the navigation; those that are not in it come last."""
    modules = [importlib.import_module(f"{pages.__name__}.{module.name}") for module in pkgutil.iter_modules(pages.__path__)]
    listed = [module.PAGE for module in modules if hasattr(module, "PAGE")]
    return tuple(sorted(listed, key=lambda page: (page.order is None, page.order or 0, page.path)))


def by_key(key: str) -> Page:
    """The page whose figures have this word in their addresses.

    Raises:
        UnknownPageError: there is none; says which there are.
    """
    known = {page.key: page for page in found() if page.figures is not None}
    if key not in known:
        msg = f"no page {key!r} with figures; known: {', '.join(sorted(known))}"
        raise UnknownPageError(msg)
    return known[key]
