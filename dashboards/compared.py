"""What a page asks to compare, and what is known of the answer by now."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import polars as pl


@dataclass(frozen=True)
class Comparison:
    """Two sets of requests as `explain` takes them, and the period [since, until); `b` None: the rest of it. `key`: the URL's own words."""

    key: str
    a: str = field(compare=False)
    b: str | None = field(compare=False)
    where: str | None = field(compare=False)
    since: datetime = field(compare=False)
    until: datetime = field(compare=False)


@dataclass(frozen=True)
class Compared:
    """The newest answer, if there is one, and the comparison that it answers; or why there is none.

    `running_s`: for how long one is on its way; None where none is.
    """

    rows: pl.DataFrame | None = None
    of: Comparison | None = None
    answered_at: datetime | None = None
    error: str = ""
    running_s: float | None = None
