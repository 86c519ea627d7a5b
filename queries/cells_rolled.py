"""Rows of cells under their numbers in; blocks, hours, days and weeks that hold their sums out.

An hour is summed up once its blocks are folded, a day once its hours are, a week once its days are. What comes later is added to each of
them as well: every tier is sums, so nothing is summed up twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import polars as pl

from queries import files
from queries.store import Store, Transaction

SUMS = ("known", "n", "num", "den", "num_sq", "den_sq", "num_den", "times")
KINDS = ("cells", "histograms")
_WHOLE = ("known", "n")
_HOUR, _DAY, _WEEK = (f"date_trunc('{unit}', started_at)" for unit in ("hour", "day", "week"))
_OPEN = (
    "insert into cell_periods select $tier, started_at, 'open' from working_periods "
    "where started_at not in (select started_at from cell_periods where tier = $tier)"
)


def add(transaction: Transaction, cells: pl.DataFrame, histograms: pl.DataFrame) -> None:
    """Appends rows of blocks, and adds them to the hours, days and weeks that were summed up already."""
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
    """Makes one row of the parts of each cell in these periods of a tier; cells that nothing is left of go."""
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
    """Sums up hours, else days, else weeks that ended by a moment and whose blocks are folded; gives how many periods were taken."""
    for tier, (limit_rows, roll) in _ROLLED.items():
        due = store.frame(files.question(f"cell_{tier}s_due"), {"closed": closed, "limit_rows": limit_rows})
        if not due.is_empty():
            with store.write() as transaction:
                _work_on(transaction, due)
                roll(transaction, due)
            return len(due)
    return 0


def _roll_hours(transaction: Transaction, hours: pl.DataFrame) -> None:
    _fold_touched(transaction)
    _work_on(transaction, hours)
    for kind in KINDS:
        transaction.execute(f"insert into hour_{kind} by name {_summed(kind, f'block_{kind}', _HOUR, _within(_HOUR))}")
    transaction.execute(f"update cell_periods set state = 'summed' where tier = 'hour' and {_within()}")
    summed = f"select 1 from cell_periods where tier = 'day' and state <> 'open' and started_at in (select {_DAY} from working_periods)"
    if not transaction.frame(summed).is_empty():
        for kind in KINDS:
            transaction.execute(f"create or replace temp table late_{kind} as select * from hour_{kind} where {_within()}")
        _into_days(transaction)
    _work_on(transaction, hours.select(pl.col("started_at").dt.truncate("1d")).unique())
    transaction.execute(_OPEN, {"tier": "day"})


def _roll_days(transaction: Transaction, days: pl.DataFrame) -> None:
    transaction.execute(files.question("cell_fleet_series"))
    for kind in KINDS:
        hours = f"hour_{kind}"
        transaction.execute(f"insert into day_{kind} by name {_summed(kind, hours, _DAY, _within(_DAY))}")
        transaction.execute(f"insert into fleet_{kind} by name {_summed(kind, _together(hours), _DAY, _within(_DAY))}")
    transaction.execute(f"update cell_periods set state = 'summed' where tier = 'day' and {_within()}")
    _into_weeks(transaction, {kind: f"(select * from fleet_{kind} where {_within()})" for kind in KINDS})
    _work_on(transaction, days.select(pl.col("started_at").dt.truncate("1w")).unique())
    transaction.execute(_OPEN, {"tier": "week"})


def _roll_weeks(transaction: Transaction, weeks: pl.DataFrame) -> None:
    del weeks
    for kind in KINDS:
        transaction.execute(f"insert into week_{kind} by name {_summed(kind, f'fleet_{kind}', _WEEK, _within(_WEEK))}")
    transaction.execute(f"update cell_periods set state = 'summed' where tier = 'week' and {_within()}")


def _add_late(transaction: Transaction, hours: pl.DataFrame, frames: dict[str, pl.DataFrame]) -> None:
    for kind, rows in frames.items():
        transaction.using(rows, f"create or replace temp table late_{kind} as select * from incoming")
        transaction.execute(f"insert into hour_{kind} by name {_summed(kind, f'late_{kind}', _HOUR, 'true', least='')}")
    _work_on(transaction, hours)
    transaction.execute(f"update cell_periods set state = 'touched' where tier = 'hour' and {_within()}")
    _into_days(transaction)


def _into_days(transaction: Transaction) -> None:
    """Adds `late_cells` and `late_histograms` to the days, and weeks, of theirs that were summed up already."""
    days = f"{_DAY} in (select started_at from cell_periods where tier = 'day' and state <> 'open')"
    found = transaction.frame(f"select distinct {_DAY} as started_at from late_cells where {days}")
    if found.is_empty():
        return
    transaction.execute(files.question("cell_fleet_series"))
    _work_on(transaction, found)
    together = {kind: _together(f"(select * from late_{kind} where {_within(_DAY)})") for kind in KINDS}
    for kind in KINDS:
        transaction.execute(f"insert into day_{kind} by name {_summed(kind, f'late_{kind}', _DAY, _within(_DAY), least='')}")
        transaction.execute(f"insert into fleet_{kind} by name {_summed(kind, together[kind], _DAY, 'true', least='')}")
    transaction.execute(f"update cell_periods set state = 'touched' where tier = 'day' and {_within()}")
    _into_weeks(transaction, together)


def _into_weeks(transaction: Transaction, sources: dict[str, str]) -> None:
    """Adds rows of all replicas together, of the days of this run, to the weeks of theirs that were summed up already."""
    weeks = f"{_WEEK} in (select started_at from cell_periods where tier = 'week' and state <> 'open')"
    for kind, source in sources.items():
        transaction.execute(f"insert into week_{kind} by name {_summed(kind, source, _WEEK, weeks, least='')}")
    touched = f"started_at in (select {_WEEK} from working_periods)"
    transaction.execute(f"update cell_periods set state = 'touched' where tier = 'week' and state = 'summed' and {touched}")


def _fold_touched(transaction: Transaction) -> None:
    for tier, periods in (("hour", "hour"), ("day", "day"), ("fleet", "day"), ("week", "week")):
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
        "and started_at < (select max(started_at) + interval 7 day from working_periods) "
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
    total = "series_id, started_at, metric_id, bin, sum(n)::bigint as total"
    summed = f"select {total} from ({one}) group by all having total {least or '<> 0'}"
    listed = "list(bin order by bin) as bins, list(total order by bin) as counts"
    return f"select series_id, started_at, metric_id, {listed} from ({summed}) group by all order by 3, 1"


# How many periods of each tier a run takes, and what sums them up; the finest first.
_ROLLED: dict[str, tuple[int, Callable[[Transaction, pl.DataFrame], None]]] = {
    "hour": (6, _roll_hours),
    "day": (2, _roll_days),
    "week": (1, _roll_weeks),
}
