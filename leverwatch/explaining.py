"""Two sets of requests and a data folder in, what tells them apart out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from leverwatch.engine_room import EngineRoom
from pipeline.explain import ranked, sizes
from pipeline.explain_intervals import with_intervals, without
from queries import explain_blocks
from queries.explain import LIMIT_KEYS, Comparison, ExplainError, comparison
from queries.sandbox import SqlError

MOST_ROWS = 300_000
UNFIT = {
    "memory_limit": "no interval: it takes more memory than [sql] limit_bytes",
    "time_limit": "no interval: it takes longer than [sql] limit_s",
    "too_large": "no interval: the period has too many blocks of 5 minutes",
}
"""What a sandbox's limit on the sums by block means to who asks: the ranking stands without them."""
COLUMNS = "select column_name, data_type from duckdb_columns() where table_name = 'requests' order by column_index"


def explain(
    room: EngineRoom,
    a: str,
    b: str | None = None,
    *,
    by: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    where: str | None = None,
    limit: int = LIMIT_KEYS,
) -> pl.DataFrame:
    """One row per key, those that tell set `a` from set `b` best first, `limit` of them at most.

    The columns are those of `pipeline.explain.ranked` and `pipeline.explain_intervals.with_intervals`.

    Raises:
        ExplainError, SqlError: a set, a key or a condition cannot be used, or a set is empty.
    """
    if limit < 1:
        msg = f"limit is {limit}; taken: 1 and more"
        raise ExplainError(msg)
    columns = dict(room.frame(COLUMNS).iter_rows())
    asked = comparison(a, b, columns, by, since, until, where)
    counted = _counted(room, asked)
    of = sizes(counted)
    for name, told, size in (("A", a, of.a), ("B", b or "the rest", of.b)):
        if not size:
            msg = f"set {name} ({told}) holds no request of this period; the other holds {max(of.a, of.b)}, {of.neither} are in neither"
            raise ExplainError(msg)
    return _with_intervals(room, asked, ranked(counted, asked.defining).head(limit), counted)


def _with_intervals(room: EngineRoom, asked: Comparison, found: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """The rows with an interval for the differences of numbers, from sums of blocks; where those do not fit, a note says so."""
    numbers = [
        explain_blocks.limits(row) for row in found.iter_rows(named=True) if row["median_a"] is not None or row["median_b"] is not None
    ]
    sql, params = explain_blocks.statement(asked, numbers)
    try:
        blocks = room.sandbox.run(sql, params, MOST_ROWS).frame()
    except SqlError as error:
        if error.code not in UNFIT:
            raise
        return without(found, UNFIT[error.code])
    return with_intervals(found, counted, blocks, [one.key for one in numbers])


def _counted(room: EngineRoom, asked: Comparison) -> pl.DataFrame:
    """The counts; of an error in a stranger's condition its first line, since the rest shows the statement made around it."""
    try:
        return room.sandbox.run(asked.sql, asked.params, MOST_ROWS).frame()
    except SqlError as error:
        if error.code != "invalid":
            raise
        hint = "a text stands in single quotes, such as \"model = 'chat-70b'\"; columns are those of `requests`"
        raise SqlError(error.message.splitlines()[0], error.code, hint) from error
