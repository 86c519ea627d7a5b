"""Closed hours out of the hot tables, into Parquet files that never change: `parts/<relation>/<hour>-<number>.parquet`.

The views `spans` and `requests` are the hot rows and all parts. A part is written, synced and renamed before the transaction
that deletes its rows from the hot table and lists it commits: a file that is not listed was never part of the store.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from queries.parts import SEALED, Sealed, quoted, relation_sql
from queries.store import Store, Transaction

SEAL_AFTER = timedelta(hours=1)
MIN_LATE_ROWS = 10_000  # late rows of an hour that has a part already wait in the hot table until they are worth a file


def part_files(store: Store, transaction: Transaction, relation: str) -> list[Path]:
    """The part files of a relation as a transaction sees them, oldest first."""
    found = transaction.frame('select "file" from parts where relation = $relation order by since, "file"', {"relation": relation})
    return [store.parts / relation / name for name in found["file"].to_list()]


def part_files_of(store: Store, relation: str) -> list[Path]:
    """The part files of a relation now."""
    with store.snapshot() as seen:
        return part_files(store, seen, relation)


def restore(store: Store) -> None:
    """Makes the views name the parts that are listed, and deletes files that no commit ever listed. To be called at start."""
    with store.write() as transaction:
        for relation in SEALED:
            listed = set(part_files(store, transaction, relation))
            folder = store.parts / relation
            folder.mkdir(exist_ok=True)
            for path in set(folder.iterdir()) - listed:
                path.unlink()
            _refresh(store, transaction, relation)


def seal_next(store: Store, watermark: datetime) -> int:
    """Seals the oldest closed hour of each relation; gives how many rows moved, 0 when there is nothing to seal."""
    return sum(_seal(store, sealed, watermark) for sealed in SEALED.values())


def _seal(store: Store, sealed: Sealed, watermark: datetime) -> int:
    cutoff = (watermark - SEAL_AFTER).replace(minute=0, second=0, microsecond=0)
    hours = store.rows(
        f"select date_trunc('hour', started_at) as since, count(*) as held from {sealed.hot} where started_at < $cutoff "
        "group by since order by since",
        {"cutoff": cutoff},
    )
    taken = {row["since"]: row["parts"] for row in _sealed_hours(store, sealed.relation)}
    for hour in hours:
        if hour["since"] not in taken or hour["held"] >= MIN_LATE_ROWS:
            return _write_part(store, sealed, hour["since"], taken.get(hour["since"], 0))
    return 0


def _sealed_hours(store: Store, relation: str) -> list[dict[str, Any]]:
    return store.rows("select since, count(*) as parts from parts where relation = $relation group by since", {"relation": relation})


def _write_part(store: Store, sealed: Sealed, since: datetime, number: int) -> int:
    until = since + timedelta(hours=1)
    name = f"{since:%Y%m%dT%H}-{number:04d}.parquet"
    path = store.parts / sealed.relation / name
    hour = {"since": since, "until": until}
    inside = "started_at >= $since and started_at < $until"
    with store.write() as transaction:
        chosen = inside
        if sealed.unit and (before := part_files(store, transaction, sealed.relation)):
            chosen += f" and ({sealed.unit}) not in ({_units_near(sealed, before)})"
        rows = f"select * from {sealed.hot} where {chosen} order by started_at"
        transaction.execute(f"create or replace temp table sealing as {rows}", hour)
        count = int(transaction.frame("select count(*) as n from sealing").item())
        if not count:
            return 0
        transaction.execute(f"copy (select * from sealing) to {quoted(path)} (format parquet, compression zstd, row_group_size 100000)")
        _sync(path)
        transaction.execute(f"delete from {sealed.hot} where {chosen}", hour)
        size = path.stat().st_size
        listed = {"relation": sealed.relation, "file": name, "rows": count, "bytes": size} | hour
        transaction.execute("insert into parts values ($relation, $file, $since, $until, $rows, $bytes)", listed)
        transaction.execute("drop table sealing")
        _refresh(store, transaction, sealed.relation)
    return count


def _units_near(sealed: Sealed, files: list[Path]) -> str:
    """The units that a part about this hour holds already: a newer version of one stays hot, where it hides the older."""
    listed = ", ".join(quoted(file) for file in files)
    return (
        f"select ({sealed.unit}) from read_parquet([{listed}], union_by_name = true) "
        "where started_at >= $since::timestamptz - interval 1 hour and started_at < $until::timestamptz + interval 1 hour"
    )


def _refresh(store: Store, transaction: Transaction, relation: str) -> None:
    files = part_files(store, transaction, relation)
    transaction.execute(f"create or replace view {relation} as {relation_sql(relation, SEALED[relation].hot, files)}")


def _sync(path: Path) -> None:
    for target in (path, path.parent):
        handle = os.open(target, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
