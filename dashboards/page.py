"""A request to a page in, what its module draws from out: the reader, the URL's query, the clock, and the pages that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from dashboards.choice import FILTER_KEYS, Choice
from dashboards.figure import Figure
from dashboards.house import House
from dashboards.kept_drawings import Drawn
from dashboards.reader import Reader
from dashboards.studio import Studio
from queries.sandbox import Sandbox

CARRIED = (*FILTER_KEYS, "since", "until", "lever")  # what navigation takes along from page to page


@dataclass(frozen=True)
class Link:
    """One entry of the navigation."""

    title: str
    url: str
    is_current: bool


@dataclass(frozen=True)
class Asked:
    """One request to a page: what its URL asks, and what answers it. `openapi` describes the application's own routes.

    `may_change`: whoever asks may send again, silence and keep; where not, pages offer none of it, and say why.
    """

    reader: Reader
    query: Mapping[str, str]
    now: datetime
    base_url: str = ""
    path: str = "/"
    pages: tuple[Page, ...] = ()
    sandbox: Sandbox | None = None
    openapi: Callable[[], Mapping[str, Any]] = dict
    headers: Mapping[str, str] = field(default_factory=dict)
    house: House | None = None
    may_change: bool = True
    studio: Studio | None = None

    @property
    def updated(self) -> str:
        """When the page was drawn, in words."""
        return f"{self.now:%H:%M:%S} UTC"

    @property
    def links(self) -> list[Link]:
        """The navigation in its order; each link carries the filters along."""
        kept = {name: self.query[name] for name in CARRIED if name in self.query}
        shown = [page for page in self.pages if page.order is not None]
        return [Link(page.title, address(page.path, kept), page.path == self.path) for page in shown]

    def drawn(self, figures: Sequence[Figure]) -> list[Figure]:
        """The figures with their drawings, all of them asked for at once; where nobody draws, they say so."""
        if self.studio is None:
            return [replace(figure, undrawn="nobody draws here") if figure.drawing else figure for figure in figures]
        named = [figure.drawing for figure in figures if figure.drawing is not None]
        found = dict(zip(named, self.studio.page(named), strict=True))
        return [_shown(figure, found[figure.drawing]) if figure.drawing is not None else figure for figure in figures]

    def download(self, figure: Figure, kind: str, chosen: Choice | None = None) -> str:
        """Where a figure of this page lies as `svg`, `png` or `csv`; of what is chosen, where the URL leaves a choice to the page."""
        query = self.query if chosen is None else {**self.query, **chosen.query}
        return address(f"/figure/{key_of(self.path)}/{figure.key}.{kind}", query)


@dataclass(frozen=True)
class Page:
    """One page: where it is, its name, its place in the navigation (None: it is not there), and the functions that draw it.

    Both raise ValueError or KeyError, with a sentence, for a query that asks for what cannot be.
    """

    path: str
    title: str
    order: int | None
    draw: Callable[[Asked], str]
    figures: Callable[[Asked], Sequence[Figure]] | None = None

    @property
    def key(self) -> str:
        """What its figures' addresses call it."""
        return key_of(self.path)


def _shown(figure: Figure, drawn: Drawn) -> Figure:
    return replace(figure, svg=None if drawn.svg is None else Markup(drawn.svg), undrawn=drawn.why)  # noqa: S704


def key_of(path: str) -> str:
    """A path as one word; the first page is `overview`."""
    return path.strip("/") or "overview"


def address(path: str, query: Mapping[str, str]) -> str:
    """A link to a path of this server, relative to its root: it may stand behind a prefix."""
    asked = f"?{urlencode(query)}" if query else ""
    return f"{path.lstrip('/') or './'}{asked}"
