"""Rows of cells under their numbers in; blocks, hours and days that hold their sums out.

An hour is summed up once its blocks are folded, a day once its hours are. What comes later is added to the hour and the day as well: every
tier is sums, so nothing is summed up twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from queries import files
from queries.store import Store, Transaction

SUMS = ("known", "n", "num", "den", "num_sq", "den_sq", "num_den", "times")
KINDS = ("cells", "histograms")
HOURS_A_RUN = 6
DAYS_A_RUN = 2
_WHOLE = ("known", "n")
_HOUR, _DAY = "date_trunc('hour', started_at)", "date_trunc('day', started_at)"
_OPEN = (
    "insert into cell_periods select $tier, started_at, 'open' from working_periods "
    "where started_at not in (select started_at from cell_periods where tier = $tier)"
)


def add(transaction: Transaction, cells: pl.DataFrame, histograms: pl.DataFrame) -> None:
    """Appends rows of blocks, and adds them to the hours and days that were summed up already."""
    frames = dict(zip(KINDS, (cells, histograms), strict=True))
    for kind, rows in frames.items():
        if not rows.is_empty():
            transaction.insert(f"block_{kind}", rows)
    hours = cells.select(pl.col("started_at").dt.truncate("1h")).unique()
    _work_on(transaction, hours)
    transaction.execute(_OPEN, {"tier": "hour"})
    late = transaction.frame(f"select started_at from cell_periods where tier = 'hour' and state <> 'open' and {_within()}")
    if not late.is_empty():
        is_late = pl.col("started_at").dt.truncate("1h").is_in(late["started_at"].implode())
        _add_late(transaction, late, {kind: rows.filter(is_late) for kind, rows in frames.items()})


def fold(transaction: Transaction, tier: str, periods: Sequence[datetime]) -> None:
    """Makes one row of the parts of each cell in these periods of a tier (block, hour, day, fleet); cells that nothing is left of go."""
    if not periods:
        return
    _work_on(transaction, _periods(periods))
    for kind in KINDS:
        table = f"{tier}_{kind}"
        transaction.execute(f"create or replace temp table folded as {_summed(kind, table, 'started_at', _within())}")
        transaction.execute(f"delete from {table} where {_within()}")
        transaction.execute(f"insert into {table} by name select * from folded")
        transaction.execute("drop table folded")


def roll_next(store: Store, closed: datetime) -> int:
    """Sums up hours, else days, that ended by a moment and whose blocks are folded; gives how many periods were taken."""
    params: dict[str, Any] = {"closed": closed, "limit_rows": HOURS_A_RUN}
    hours = store.frame(files.question("cell_hours_due"), params)
    days = store.frame(files.question("cell_days_due"), params | {"limit_rows": DAYS_A_RUN}) if hours.is_empty() else hours.clear()
    if hours.is_empty() and days.is_empty():
        return 0
    with store.write() as transaction:
        if hours.is_empty():
            _roll_days(transaction, days)
        else:
            _fold_touched(transaction)
            _roll_hours(transaction, hours)
    return len(hours) + len(days)


def _roll_hours(transaction: Transaction, hours: pl.DataFrame) -> None:
    _work_on(transaction, hours)
    for kind in KINDS:
        transaction.execute(f"insert into hour_{kind} by name {_summed(kind, f'block_{kind}', _HOUR, _within(_HOUR))}")
    transaction.execute(f"update cell_periods set state = 'summed' where tier = 'hour' and {_within()}")
    _into_days(transaction, {kind: f"(select * from hour_{kind} where {_within()})" for kind in KINDS})
    _work_on(transaction, hours.select(pl.col("started_at").dt.truncate("1d")).unique())
    transaction.execute(_OPEN, {"tier": "day"})


def _roll_days(transaction: Transaction, days: pl.DataFrame) -> None:
    _work_on(transaction, days)
    transaction.execute(files.question("cell_fleet_series"))
    for kind in KINDS:
        hours = f"hour_{kind}"
        transaction.execute(f"insert into day_{kind} by name {_summed(kind, hours, _DAY, _within(_DAY))}")
        transaction.execute(f"insert into fleet_{kind} by name {_summed(kind, _together(hours), _DAY, _within(_DAY))}")
    transaction.execute(f"update cell_periods set state = 'summed' where tier = 'day' and {_within()}")


def _add_late(transaction: Transaction, hours: pl.DataFrame, frames: dict[str, pl.DataFrame]) -> None:
    for kind, rows in frames.items():
        transaction.using(rows, f"create or replace temp table late_{kind} as select * from incoming")
        transaction.execute(f"insert into hour_{kind} by name {_summed(kind, f'late_{kind}', _HOUR, 'true', least='')}")
    _work_on(transaction, hours)
    transaction.execute(f"update cell_periods set state = 'touched' where tier = 'hour' and {_within()}")
    _into_days(transaction, {kind: f"late_{kind}" for kind in KINDS})


def _into_days(transaction: Transaction, sources: dict[str, str]) -> None:
    """Adds rows to the days of theirs that were summed up already."""
    days = f"{_DAY} in (select started_at from cell_periods where tier = 'day' and state <> 'open')"
    found = transaction.frame(f"select distinct {_DAY} as started_at from {sources['cells']} s where {days}")
    if found.is_empty():
        return
    transaction.execute(files.question("cell_fleet_series"))
    for kind, source in sources.items():
        transaction.execute(f"insert into day_{kind} by name {_summed(kind, source, _DAY, days, least='')}")
        transaction.execute(f"insert into fleet_{kind} by name {_summed(kind, _together(source), _DAY, days, least='')}")
    _work_on(transaction, found)
    transaction.execute(f"update cell_periods set state = 'touched' where tier = 'day' and {_within()}")


def _fold_touched(transaction: Transaction) -> None:
    for tier, periods in (("hour", "hour"), ("day", "day"), ("fleet", "day")):
        touched = transaction.frame("select started_at from cell_periods where tier = $tier and state = 'touched'", {"tier": periods})
        fold(transaction, tier, touched["started_at"].to_list())
    transaction.execute("update cell_periods set state = 'summed' where state = 'touched'")


def _periods(periods: Sequence[datetime]) -> pl.DataFrame:
    return pl.DataFrame({"started_at": periods}, schema={"started_at": pl.Datetime("us", "UTC")})


def _work_on(transaction: Transaction, periods: pl.DataFrame) -> None:
    transaction.using(periods, "create or replace temp table working_periods as select started_at from incoming")


def _within(period: str = "started_at") -> str:
    """That a row lies in the periods of this run; the bounds let the database pass over what is far from them."""
    return (
        "started_at >= (select min(started_at) from working_periods) "
        "and started_at < (select max(started_at) + interval 1 day from working_periods) "
        f"and {period} in (select started_at from working_periods)"
    )


def _together(source: str) -> str:
    """Rows under the series of all replicas together."""
    return (
        f"(select c.* replace (t.series_id as series_id) from {source} c join cell_series s using (series_id) "
        "join cell_series t on t.segment_id = s.segment_id and t.lever = s.lever and t.arm = s.arm and t.is_together)"
    )


def _summed(kind: str, source: str, period: str, condition: str, least: str = "> 0") -> str:
    """One row per series, period and metric of a source; with an empty `least` also those that only take something away."""
    keys = f"series_id, {period} as started_at, metric_id"
    if kind == "cells":
        sums = ", ".join(f"sum({name}){'::bigint' if name in _WHOLE else ''} as {name}" for name in SUMS)
        having = f" having sum(known) {least}" if least else ""
        return f"select {keys}, {sums} from {source} where {condition} group by all{having} order by 3, 1"
    one = f"select {keys}, unnest(bins) as bin, unnest(counts) as n from {source} where {condition}"
    summed = f"select series_id, started_at, metric_id, bin, sum(n)::bigint as total from ({one}) group by all having total {least or '<> 0'}"
    listed = "list(bin order by bin) as bins, list(total order by bin) as counts"
    return f"select series_id, started_at, metric_id, {listed} from ({summed}) group by all order by 3, 1"
