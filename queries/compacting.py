"""Many parts of a closed day in, few parts of the same rows out: a question opens every part, so that their number is what history costs.

Measured with 2,200 parts: listing a new one took 0.45 s and any question over the relation above 1 s, however few rows it wanted.
The new file is written beside everything else, by a thread and a database of its own; only the exchange is a transaction.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from queries import part_writer, sealing
from queries.parts import quoted
from queries.store import Store, schema_in_utc

AFTER = timedelta(hours=26)  # behind the watermark: most of what comes late for a day has come
LIMIT_BYTES = 128 * 1024 * 1024  # of a part: a late version of a request has the part of the older one written anew
MEMORY = "512MB"
LEVEL = 3
ROWS_AT_ONCE = 25_000


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of one day, and the file that is to take their place."""

    since: datetime
    until: datetime
    names: list[str]
    rows: int
    target: Path


@dataclass(slots=True)
class Compactor:
    """Compacts the parts of one relation, a group at a time. `step` and `close` are called from one thread."""

    store: Store
    relation: str = "requests"
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "compact"))
    _work: tuple[Group, duckdb.DuckDBPyConnection, Future[Path]] | None = None

    def step(self, watermark: datetime) -> int:
        """Begins a group, or puts a finished one in place; gives how many rows were put in place."""
        if self._work is None:
            group = _next_group(self.store, self.relation, watermark - AFTER)
            if group:
                connection = duckdb.connect(config={"threads": 1, "memory_limit": MEMORY})
                sources = [self.store.parts / self.relation / name for name in group.names]
                self._work = group, connection, self._pool.submit(_merge, connection, sources, group.target)
            return 0
        group, connection, written = self._work
        if not written.done():
            return 0
        self._work = None
        connection.close()
        return _exchange(self.store, self.relation, replace(group, target=written.result()))

    def close(self) -> None:
        """Gives up what is being written; the parts it was made of stay."""
        if self._work is not None:
            group, connection, written = self._work
            while not written.done():
                connection.interrupt()  # a statement that has not begun yet does not hear it
                wait([written], timeout=0.1)
            connection.close()
            finished = None if written.exception() else written.result()
            (finished or group.target).unlink(missing_ok=True)
        self._pool.shutdown()


def _next_group(store: Store, relation: str, before: datetime) -> Group | None:
    """The oldest parts of one day that has ended before a moment, as many in a row as make one of `LIMIT_BYTES` at most; two at least."""
    parts = store.rows(
        "select * from parts where relation = $relation and until <= date_trunc('day', $before::timestamptz) and is_settled "
        'and "file" not in (select "file" from dirty_parts) order by since, "file"',
        {"relation": relation, "before": before},
    )
    group: list[dict[str, Any]] = []
    for part in [*parts, None]:
        if part and group and part["since"].date() == group[0]["since"].date() and _bytes([*group, part]) <= LIMIT_BYTES:
            group.append(part)
        elif len(group) > 1:
            break
        else:
            group = [part] if part else []
    if len(group) < 2:
        return None
    since, until = group[0]["since"], max(part["until"] for part in group)
    target = sealing.fresh_path(store, relation, f"{since:{sealing.DAY}}")  # those of an hour have the hour in theirs
    return Group(since, until, [part["file"] for part in group], sum(part["rows"] for part in group), target)


def _bytes(parts: list[dict[str, Any]]) -> int:
    return sum(part["bytes"] for part in parts)


def _merge(connection: duckdb.DuckDBPyConnection, sources: list[Path], target: Path) -> Path:
    """Writes the rows of some files into one, by one thread and within a bound of memory; gives its whole name."""
    listed = ", ".join(quoted(source) for source in sources)
    rows = f"select * from read_parquet([{listed}], union_by_name = true)"
    connection.execute("set TimeZone = 'UTC'")
    reader = connection.sql(rows).to_arrow_reader(ROWS_AT_ONCE)
    schema = schema_in_utc(reader.schema)
    target, _ = part_writer.write_sorted(target, (pa.Table.from_batches([batch]).cast(schema) for batch in reader))
    sealing.sync(target)
    return target


def _exchange(store: Store, relation: str, group: Group) -> int:
    """Lists the new part in the place of those it was made of; gives its rows, 0 where one of them was replaced meanwhile."""
    folder = store.parts / relation
    with store.write() as transaction:
        listed = transaction.frame('select "file" from parts where relation = $relation', {"relation": relation})["file"].to_list()
        if not set(group.names) <= set(listed):
            group.target.unlink(missing_ok=True)
            return 0
        stored_at = max((folder / name).stat().st_mtime for name in group.names)
        os.utime(group.target, (stored_at, stored_at))  # retention counts from when rows were stored
        sealing.list_part(transaction, relation, group.target, group.since, group.rows, level=LEVEL, until=group.until)
        sealing.unlist(store, transaction, relation, group.names)
    return group.rows
