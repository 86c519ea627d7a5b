"""What a chart says in every form: to be drawn, in words, as numbers, and the question behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import polars as pl
from markupsafe import Markup

from dashboards import theme
from pipeline.metrics import Metric
from queries import question_values


@dataclass(frozen=True)
class Sql:
    """A named question with its parameters. Those that a URL cannot hold (null, lists) are written into the text."""

    text: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def filled(self) -> str:
        """The text, with nulls and lists in place."""
        fixed = {name: _literal(value) for name, value in self.params.items() if value is None or isinstance(value, list | tuple)}
        return re.sub(r"\$(\w+)", lambda found: fixed.get(found[1], found[0]), self.text)

    @property
    def url(self) -> str:
        """The SQL page with this question."""
        kept = {f"p.{name}": _text(value) for name, value in self.params.items() if not (value is None or isinstance(value, list | tuple))}
        return f"sql?{urlencode({'sql': self.filled, **kept})}"


@dataclass(frozen=True)
class Figure:
    """One chart of a page. `drawing` is what is to be drawn; without it there is nothing and `note` says why.

    On a page it has the `svg` of that, or `undrawn` says why not (`Asked.drawn`).
    `n` counts the requests behind it, `coverage` (ratio) is the share of those asked about that had what it needs, `newest_at` is when its
    newest data ends; None where that has no meaning. `columns` and `numbers` are for reading; `values` holds the same in stored units.
    """

    key: str
    title: str
    note: str
    label: str = ""
    drawing: str | None = None
    columns: list[str] = field(default_factory=list)
    numbers: list[list[str]] = field(default_factory=list)
    sql: Sql | None = None
    n: int | None = None
    coverage: float | None = None
    newest_at: datetime | None = None
    metric: Metric | None = None
    values: pl.DataFrame | None = None
    svg: Markup | None = None
    undrawn: str = ""

    @property
    def facts(self) -> list[str]:
        """n, coverage, freshness, in words."""
        said = [f"n {theme.count(self.n)}"] if self.n is not None else []
        said += [f"coverage {theme.percent(self.coverage)}"] if self.coverage is not None else []
        return said + ([f"until {self.newest_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"] if self.newest_at is not None else [])


def _literal(value: Sequence[Any] | None) -> str:
    if value is None:
        return "null"
    quoted = ("'" + str(one).replace("'", "''") + "'" for one in value)
    return f"[{', '.join(quoted)}]"


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else question_values.typed(value)
