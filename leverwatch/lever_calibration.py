"""A store and a lever in, what splits of one of its arms say of its scales out; kept where that is asked for."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from pipeline import calibrating, calibrating_store
from pipeline.segments import LEVERS
from queries.report import ReportError, moment
from queries.store import Store

SINCE = "7d"
MOST_SPLITS = 500


def calibrate(
    store: Store, lever: str | None, since: str | None, splits: int | None, now: datetime, *, apply: bool = False
) -> pl.DataFrame:
    """One row per lever, metric and block length (`calibrating_store.SCHEMA`); with `apply` they widen the scales from the next block on.

    An age such as `7d` counts back from the newest block.

    Raises:
        ReportError: there is no such lever, or a time or number is out of bounds.
    """
    splits = calibrating.SPLITS if splits is None else splits
    if lever is not None and lever not in LEVERS:
        msg = f"lever {lever[:40]!r} is unknown; known: {', '.join(LEVERS)}"
        raise ReportError(msg)
    if not 1 <= splits <= MOST_SPLITS:
        msg = f"{splits} splits: 1 to {MOST_SPLITS} are taken"
        raise ReportError(msg)
    newest = calibrating_store.newest(store)
    began = moment(since or SINCE, newest or now)
    seen = [row["lever"] for row in store.rows("select distinct lever from cell_series where lever <> '' order by lever")]
    levers = seen if lever is None else [lever]
    found = calibrating_store.recommended(store, levers, began, splits)
    if apply:
        calibrating_store.keep(store, found, now)
    return found
