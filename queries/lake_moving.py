"""A store and a lake in, the tables of one in the other out: an hour at a time, each once, checked by counts, sums and content.

A move that is broken off goes on where it was: a lake keeps a mark with each hour that came, an hour of a store is written anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa

from queries import part_writer
from queries.lake import Lake
from queries.lake_rows import conformed
from queries.lake_tables import columns, hour_name, known
from queries.store import Store, Transaction

HOUR = timedelta(hours=1)
OF_MOVE = "migrated"
TOLERANCE = 1e-9  # of sums of floats whose order differs
RELATIONS = {"spans": "stored_spans", "requests": "requests"}  # hot rows and parts in one
_SUMS = ("known", "n", "num", "den", "num_sq", "den_sq", "num_den", "times")
_SUMMED = ", ".join(f"sum({one}) as {one}" for one in _SUMS)
SOURCES = {
    "cells": f"select * exclude ({', '.join(_SUMS)}), {_SUMMED} from lake_cells where {{}} group by all",
    "cell_histograms": """
        select * exclude (bin, n), list(bin order by bin) as bins, list(n order by bin) as counts
        from (
            select * exclude (bins, counts, bin, n), bin, sum(n)::bigint as n
            from (select *, unnest(bins) as bin, unnest(counts) as n from lake_histograms where {}) group by all
        ) where n <> 0 group by all
    """,
}
"""What is moved of a table, where that is not all of its relation: cells in one row each, which a store may keep in several."""

TABLES = (
    "spans", "samples", "evaluations", "imported_requests", "lever_settings", "ingest_entries", "requests", "quarantine", "suspicions",
    "sampling", "cell_histograms", "cells", "effects",
)  # fmt: skip
Once = Callable[[str, pa.Table], pa.Table]
Put = Callable[[Transaction, datetime, pa.Table], None]


class MovedError(RuntimeError):
    """What was moved is not what is there, or something else is there already; nothing is taken away from where it came from."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved of a table: hours, rows, and the sum of its whole numbers."""

    table: str
    hours: int
    rows: int
    sum: int


@dataclass(frozen=True, slots=True)
class Content:
    """What some rows are held against by: their number, the sums of their numbers, and a number that all their values make."""

    rows: int
    whole: int
    real: float
    digest: int | None


class Contents:
    """Says what rows come to. Holds a database of its own, which is made once for many."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("set TimeZone = 'UTC'")

    def __enter__(self) -> Contents:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def of(self, table: str, rows: pa.Table) -> Content:
        """What rows of a table come to, in whatever order. Cells that were taken apart and put together have sums alone."""
        shape = columns(table)
        whole = " + ".join(f'coalesce(sum("{one.name}"::hugeint), 0)' for one in shape if pa.types.is_integer(one.type)) or "0"
        real = " + ".join(f'coalesce(fsum("{one.name}"), 0)' for one in shape if pa.types.is_floating(one.type)) or "0.0"
        digest = "0" if table in SOURCES else "coalesce(sum(hash(moved)::hugeint), 0)"
        fitted = conformed(rows, shape)
        self._connection.register("moved", part_writer.packed(fitted) if table == "spans" else fitted)
        try:
            row = self._connection.execute(f"select count(*), {whole}, {real}, {digest} from moved").fetchall()[0]
        finally:
            self._connection.unregister("moved")
        return Content(row[0], int(row[1]), float(row[2]), None if table in SOURCES else int(row[3]))


def hours_of(store: Store, table: str) -> list[datetime]:
    """The hours that have rows of a table in a store, oldest first."""
    relation, time = RELATIONS.get(table, known(table).relation), known(table).time
    found = store.frame(f'select distinct date_trunc(\'hour\', "{time}") as hour from {relation} where "{time}" is not null order by 1')
    return [hour.astimezone(UTC) for hour in found["hour"].to_list()]


def of_hour(store: Store, table: str, hour: datetime) -> pa.Table:
    """The rows that a store has of an hour of a table, as a lake has them."""
    relation, time = RELATIONS.get(table, known(table).relation), known(table).time
    within = f'"{time}" >= $hour and "{time}" < $hour::timestamptz + interval 1 hour'
    asked = SOURCES.get(table, f"select * from {relation} where {{}}").format(within)
    with store.snapshot() as seen:
        tables = [conformed(one, columns(table)) for one in seen.tables(asked, {"hour": hour})]
    return pa.concat_tables([columns(table).empty_table(), *tables])


def to_lake(store: Store, lake: Lake, table: str, contents: Contents) -> Moved:
    """Moves a table into a lake.

    Raises:
        MovedError: the lake has rows of one of these hours that came otherwise, or what came is not what was sent.
        LakeError: the lake cannot be written.
    """
    hours, count, total = hours_of(store, table), 0, 0
    for hour in hours:
        rows, mark = of_hour(store, table, hour), f"{OF_MOVE} {hour_name(hour)}"
        if lake.mark(table, mark) is None:
            if lake.files(table, hour, hour + HOUR):
                msg = f"{lake.uri}: {table} has rows of {hour_name(hour)} that came otherwise; move before anything else writes there"
                raise MovedError(msg)
            lake.append(table, rows, {mark: 1})
        there = lake.read(table, None, hour, hour + HOUR)
        told = _held_against(f"{lake.uri}: {table} of {hour_name(hour)}", contents.of(table, rows), contents.of(table, there))
        count, total = count + told.rows, total + told.whole
    return Moved(table, len(hours), count, total)


def from_lake(lake: Lake, store: Store, table: str, once: Once, put: Put, contents: Contents) -> Moved:
    """Moves a table of a lake into a store, copies of rows left out. `put` writes an hour, where the rows do not simply replace.

    Raises:
        MovedError: what came is not what was sent.
        LakeError: the lake cannot be read.
    """
    count, total, hours = 0, 0, _hours_in(lake, table)
    for hour in hours:
        rows = once(table, lake.read(table, None, hour, hour + HOUR))
        with store.write() as transaction:
            put(transaction, hour, rows)
        there = of_hour(store, table, hour)
        told = _held_against(f"{store.folder}: {table} of {hour_name(hour)}", contents.of(table, rows), contents.of(table, there))
        count, total = count + told.rows, total + told.whole
    return Moved(table, len(hours), count, total)


def _hours_in(lake: Lake, table: str) -> list[datetime]:
    names = sorted({file.hour for file in lake.files(table)})
    return [datetime.fromisoformat(f"{name}:00+00:00") for name in names]


def _held_against(where: str, sent: Content, came: Content) -> Content:
    is_same = (sent.rows, sent.whole, sent.digest) == (came.rows, came.whole, came.digest)
    if not is_same or not math.isclose(sent.real, came.real, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        sums = f"whole numbers sum to {came.whole} of {sent.whole}, others to {came.real} of {sent.real}"
        msg = f"{where}: {came.rows} rows came of {sent.rows}, {sums}"
        raise MovedError(msg)
    return came
