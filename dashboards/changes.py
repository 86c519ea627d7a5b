"""What segments had yesterday and have today in, what changed out: segments that came and went, and inputs that are told less often."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from dashboards import theme
from dashboards.choice import Choice, title
from pipeline.metrics import CORE, by_name, in_cells
from pipeline.segments import JUDGING_KEYS

DAY = timedelta(days=1)
COVERED = (*(name for name in CORE if in_cells(by_name()[name])), "tpot_s")
DROP = 0.1
FEW_REQUESTS = 50
SHOWN = 6


@dataclass(frozen=True)
class Change:
    """One thing that changed: what it is, where, and the page that shows it."""

    kind: str
    where: str
    url: str
    text: str
    css: str = "quiet"


@dataclass(frozen=True)
class Changes:
    """What changed within a day, and how many more there are of each kind; `is_new` where nothing is older than a day."""

    listed: list[Change]
    left_out: int
    is_new: bool


def changes(today: pl.DataFrame, yesterday: pl.DataFrame, chosen: Choice, until: datetime) -> Changes:
    """Compares two reports by judging keys, each of one day."""
    if yesterday.is_empty():
        return Changes([], 0, is_new=True)
    keys = list(JUDGING_KEYS)
    came = today.join(yesterday, on=keys, how="anti", nulls_equal=True).sort("requests", descending=True)
    went = yesterday.join(today, on=keys, how="anti", nulls_equal=True).sort("requests", descending=True)
    dropped = _dropped(today.join(yesterday, on=keys, nulls_equal=True, suffix="_before"), chosen)
    began = f"new: no request in the day before {theme.clock(until - DAY, until)}"
    new = [_of(row, "new segment", f"{began}; {theme.count(row['requests'])} since", chosen, "quiet") for row in came.iter_rows(named=True)]
    gone = [
        _of(row, "segment gone", f"no request in a day, {theme.count(row['requests'])} in the day before", chosen, "warn")
        for row in went.iter_rows(named=True)
    ]
    shown = [*dropped[:SHOWN], *gone[:SHOWN], *new[:SHOWN]]
    return Changes(shown, len(dropped) + len(gone) + len(new) - len(shown), is_new=False)


def _dropped(both: pl.DataFrame, chosen: Choice) -> list[Change]:
    """Where a metric's input is told by fewer requests than the day before, the largest drop first."""
    found: list[tuple[float, Change]] = []
    many = both.filter((pl.col("requests") >= FEW_REQUESTS) & (pl.col("requests_before") >= FEW_REQUESTS))
    for name in COVERED:
        before, now = f"{name}_coverage_before", f"{name}_coverage"
        for row in many.filter(pl.col(before) - pl.col(now).fill_null(0.0) > DROP).iter_rows(named=True):
            said = f"{by_name()[name].title}: coverage {theme.percent(row[now] or 0.0)}, the day before {theme.percent(row[before])}"
            found.append((row[before] - (row[now] or 0.0), _of(row, "coverage drop", said, chosen, "warn")))
    return [change for _, change in sorted(found, key=lambda one: -one[0])]


def _of(row: dict[str, Any], kind: str, text: str, chosen: Choice, css: str) -> Change:
    keys = {key: row[key] for key in JUDGING_KEYS}
    return Change(kind, title(keys), chosen.url(keys=keys, lever=None), text, css)
