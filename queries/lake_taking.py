"""Tables of a lake in, the same rows in a store out: an hour at a time, each row once, in the place of what the store had of that hour."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import polars as pl
import pyarrow as pa

from queries.lake import Lake, LakeError
from queries.lake_tables import hour_begin, known
from queries.store import Store, Transaction

HOUR = timedelta(hours=1)
_PAIRS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))

OF = "made as "  # in `lake_taken`, before a table's name: which table of that name a store follows

Put = Callable[[Transaction, datetime], None]


def once(table: str, rows: pa.Table) -> pa.Table:
    """The rows without copies: of those that one key tells, the one that was received first."""
    keys = known(table).key
    if not keys or not rows.num_rows:
        return rows
    ordered = ["received_at"] if "received_at" in rows.schema.names else []
    frame: pl.DataFrame = pl.DataFrame(rows.select([*keys, *ordered])).with_row_index("row")
    maps = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Map)]
    frame = frame.with_columns(pl.col(maps).cast(_PAIRS)).sort(*ordered, "row")
    first = frame.unique(list(keys), keep="first", maintain_order=True).sort("row")
    return rows if len(first) == rows.num_rows else rows.take(first["row"].to_arrow())


def taken(store: Store, relation: str) -> int:
    """The version of a lake's table that a store has taken in; -1 where none."""
    rows = store.rows("select version from lake_taken where relation = $relation", {"relation": relation})
    return int(rows[0]["version"]) if rows else -1


def note(transaction: Transaction, relation: str, version: int, now: datetime, since: datetime | None = None) -> None:
    """Notes that a store has taken in a version of a lake's table, and since when what it has of it is all there is."""
    row = {"relation": relation, "version": version, "since": since, "now": now}
    transaction.execute("insert or replace into lake_taken values ($relation, $version, $since, $now)", row)


def refuse_another(store: Store, lake: Lake, tables: Sequence[str], now: datetime) -> None:
    """Notes which tables a store follows, and refuses others of the same names: their versions count anew, and rows of both would mix.

    Raises:
        LakeError: a table is another than the one that was taken in before, or the lake cannot be read.
    """
    query = "select relation, version from lake_taken where starts_with(relation, $of)"
    known = {row["relation"]: row["version"] for row in store.rows(query, {"of": OF})}
    found = {OF + table: number_of(identity) for table in tables if (identity := lake.identity(table))}
    others = [name.removeprefix(OF) for name, number in found.items() if known.get(name, number) != number]
    if others:
        msg = (
            f"{lake.uri} is not the lake that {store.folder} followed until now (other tables: {', '.join(others)}): [store] uri names "
            "another, or it was made anew; follow it with a folder of its own (--data), or set uri back"
        )
        raise LakeError(msg)
    new = {name: number for name, number in found.items() if name not in known}
    if new:
        with store.write() as transaction:
            for name, number in new.items():
                note(transaction, name, number, now)


def number_of(text: str) -> int:
    """A number of a text that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest())


def due(store: Store, lake: Lake, table: str) -> tuple[int, list[datetime]]:
    """(the newest version, the hours that changed since the one that was taken in), oldest first."""
    version, before = lake.version(table), taken(store, table)
    if version == before:
        return version, []
    is_after = 0 <= before < version  # a lake that was put back to an earlier state counts its versions anew
    hours = lake.changed(table, before) if is_after else {hour_begin(file.hour) for file in lake.files(table)}
    return version, sorted(hours)


def take(store: Store, lake: Lake, table: str, now: datetime, put: Put | None = None) -> int:
    """Takes in what changed of a table; gives how many hours that were. `put` stores an hour where its rows do not simply replace.

    Raises:
        LakeError: the lake cannot be read.
    """
    version, hours = due(store, lake, table)
    for hour in hours:
        rows = None if put else once(table, lake.read(table, None, hour, hour + HOUR))
        with store.write() as transaction:
            if rows is None and put:
                put(transaction, hour)
            elif rows is not None:
                replace(transaction, table, hour, rows)
    if version != taken(store, table):
        with store.write() as transaction:
            note(transaction, table, version, now)
    return len(hours)


def replace(transaction: Transaction, table: str, hour: datetime, rows: pa.Table) -> None:
    """Writes an hour in the place of what a store has of it."""
    relation, time = known(table).relation, known(table).time
    within = f'"{time}" >= $hour and "{time}" < $hour::timestamptz + interval 1 hour'
    transaction.execute(f"delete from {relation} where {within}", {"hour": hour})
    if rows.num_rows:
        transaction.insert(relation, rows)
