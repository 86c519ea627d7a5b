"""Two sets of requests and a data folder in, what tells them apart out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import polars as pl

from dashboards.compared import Comparison as PageComparison
from pipeline.explain import ranked, sizes
from pipeline.explain_intervals import with_intervals, without
from queries import explain_blocks
from queries.explain import LIMIT_KEYS, Comparison, ExplainError, comparison
from queries.sandbox import Sandbox, SqlError

MOST_ROWS = 300_000
UNFIT = {
    "memory_limit": "no interval: it takes more memory than [sql] limit_bytes",
    "time_limit": "no interval: it takes longer than [sql] limit_s",
    "too_large": "no interval: the period has too many blocks of 5 min",
}
"""What a sandbox's limit on the sums by block means to who asks: the ranking stands without them."""
EVERY_KEY = 40
"""As many keys as a page shows: those of levers among them."""
COLUMNS = "select column_name, data_type from duckdb_columns() where table_name = 'requests' order by column_index"


class Room(Protocol):
    """What is asked: an opened data folder."""

    sandbox: Sandbox

    def frame(self, sql: str) -> pl.DataFrame:
        """The rows of one of our own statements."""
        ...


def explain(
    room: Room,
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
    return explained(room, asked_of(room, a, b, by, since, until, where), (a, b or "the rest"), limit)


def asked_of(
    room: Room, a: str, b: str | None, by: Sequence[str], since: datetime | None, until: datetime | None, where: str | None
) -> Comparison:
    """The comparison, not run yet. Raises ExplainError as `explain`."""
    return comparison(a, b, dict(room.frame(COLUMNS).iter_rows()), by, since, until, where)


def compared(room: Room, asked: PageComparison) -> pl.DataFrame:
    """As `explain`, of what a page asks to compare: more keys, and as much time as a question may ask for."""
    question = asked_of(room, asked.a, asked.b, (), asked.since, asked.until, asked.where)
    return explained(room, question, (asked.a, asked.b or "the rest"), EVERY_KEY, room.sandbox.limits.most_wall_s)


def explained(room: Room, asked: Comparison, told: tuple[str, str], limit: int, limit_s: float | None = None) -> pl.DataFrame:
    """As `explain`, of a comparison whose sets were `told` in these words; each of its two statements may take `limit_s`."""
    if limit < 1:
        msg = f"limit {limit}: 1 or more is taken"
        raise ExplainError(msg)
    counted = _counted(room, asked, limit_s)
    of = sizes(counted)
    for name, words, size in (("A", told[0], of.a), ("B", told[1], of.b)):
        if not size:
            msg = f"set {name} ({words}) holds no request of this period; the other holds {max(of.a, of.b)}, {of.neither} are in neither"
            raise ExplainError(msg)
    return _with_intervals(room, asked, ranked(counted, asked.defining).head(limit), counted, limit_s)


def _with_intervals(room: Room, asked: Comparison, found: pl.DataFrame, counted: pl.DataFrame, limit_s: float | None) -> pl.DataFrame:
    """The rows with an interval for the differences of numbers, from sums of blocks; where those do not fit, a note says so."""
    numbers = [
        explain_blocks.limits(row) for row in found.iter_rows(named=True) if row["median_a"] is not None or row["median_b"] is not None
    ]
    sql, params = explain_blocks.statement(asked, numbers)
    try:
        blocks = room.sandbox.run(sql, params, MOST_ROWS, limit_s=limit_s).frame()
    except SqlError as error:
        if error.code not in UNFIT:
            raise
        return without(found, UNFIT[error.code])
    return with_intervals(found, counted, blocks, [one.key for one in numbers])


def _counted(room: Room, asked: Comparison, limit_s: float | None) -> pl.DataFrame:
    """The counts; of an error in a stranger's condition its first line, since the rest shows the statement made around it."""
    try:
        return room.sandbox.run(asked.sql, asked.params, MOST_ROWS, limit_s=limit_s).frame()
    except SqlError as error:
        if error.code != "invalid":
            raise
        hint = "a text stands in single quotes, such as \"model = 'chat-70b'\"; columns are those of `requests`"
        raise SqlError(error.message.splitlines()[0], error.code, hint) from error
