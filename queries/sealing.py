"""Closed hours out of the hot tables, into Parquet files that never change: `parts/<relation>/<hour>-<layout>-<number>.parquet`.

The views `spans` and `requests` are the hot rows and all parts. A part is written and synced before the transaction that deletes its
rows from the hot table and lists it commits: a file that is not listed is not part of the store (`queries.lost_parts`). When a late
span makes a sealed request anew, the part that holds the old one is written again without it, under another name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from queries import lost_parts, of_traces, part_writer
from queries.parts import SEALED, quoted, stored_sql, whole_sql
from queries.store import Store, Transaction

SEALED_LEVEL = 2  # of a part: it holds what there was of a closed hour; those below are fresh (queries.fresh_parts)
SEAL_AFTER = timedelta(hours=1)
HOUR, DAY = "%Y%m%dT%H", "%Y%m%d"  # what the names of parts begin with
MIN_LATE_ROWS = 10_000  # late rows of an hour that has a part already wait in the hot table until they are worth a file


def part_files(store: Store, transaction: Transaction, relation: str) -> list[Path]:
    """The part files of a relation as a transaction sees them, oldest first."""
    found = transaction.frame('select "file" from parts where relation = $relation order by since, "file"', {"relation": relation})
    return [store.parts / relation / name for name in found["file"].to_list()]


def part_files_of(store: Store, relation: str) -> list[Path]:
    """The part files of a relation now."""
    with store.snapshot() as seen:
        return part_files(store, seen, relation)


def restore(store: Store, now: datetime | None = None) -> None:
    """Makes the views name the parts that are listed, and sets aside the files that are not. To be called at start.

    Raises:
        PartsError: a listed part is missing or damaged.
    """
    with store.write() as transaction:
        for relation in SEALED:
            (store.parts / relation).mkdir(exist_ok=True)
        lost_parts.check(store, transaction, now or datetime.now(UTC))
        lost_parts.set_aside(store, transaction)
        for relation in SEALED:
            _note_numbers(store, relation, part_files(store, transaction, relation))
            refresh(store, transaction, relation)
    lost_parts.forget_asked(store)


def seal_next(store: Store, watermark: datetime) -> int:
    """Seals the oldest closed hour of each relation; gives how many rows moved, 0 when there is nothing to seal."""
    return sum(_seal(store, relation, watermark) for relation in SEALED)


def withdraw(store: Store, transaction: Transaction) -> None:
    """Takes the requests that the traces of `working_traces` replace out of the parts; the transaction then writes them anew."""
    since, until = transaction.frame("select min(replaced_since), max(replaced_until) from working_traces").row(0)
    if since is None:
        return
    near = of_traces.parts_of_period(transaction, "requests", since, until)
    names = of_traces.parts_that_hold(store, transaction, "requests", near, of_traces.REPLACED)
    listed = 'select "file", since, until, level, is_settled from parts where relation = \'requests\' and list_contains($names, "file")'
    parts = {part["file"]: part for part in transaction.frame(listed, {"names": names}).to_dicts()} if names else {}
    for name in names:
        part = parts[name]
        replace(transaction, "requests", name)
        source = f"read_parquet([{quoted(store.parts / 'requests' / name)}]) as part"
        kept = transaction.tables(f"select part.* from {source} anti join {of_traces.REPLACED.format(rows='part')}")
        _write(store, transaction, "requests", (part["since"], part["until"]), kept, part["level"], is_settled=part["is_settled"])
        refresh(store, transaction, "requests")


def unlist(store: Store, transaction: Transaction, relation: str, names: list[str]) -> None:
    """Takes parts out of a relation. Their files are deleted once nobody reads them (`queries.sweep`)."""
    for name in names:
        replace(transaction, relation, name)
    refresh(store, transaction, relation)


def replace(transaction: Transaction, relation: str, name: str) -> None:
    named = {"relation": relation, "file": name}
    transaction.execute('delete from parts where relation = $relation and "file" = $file', named)
    transaction.execute('insert into replaced_parts (relation, "file") values ($relation, $file)', named)


def _seal(store: Store, relation: str, watermark: datetime) -> int:
    cutoff = (watermark - SEAL_AFTER).replace(minute=0, second=0, microsecond=0)
    hours = store.rows(
        f"select date_trunc('hour', started_at) as since, count(*) as held from {relation}_hot "
        f"where started_at < $cutoff and {_movable(relation)} group by since order by since",
        {"cutoff": cutoff},
    )
    of_sealed = {"relation": relation, "level": SEALED_LEVEL}
    taken = store.rows("select since, until from parts where relation = $relation and level >= $level", of_sealed)
    for hour in hours:
        if not any(part["since"] <= hour["since"] < part["until"] for part in taken) or hour["held"] >= MIN_LATE_ROWS:
            return _seal_hour(store, relation, hour["since"])
    return 0


def _seal_hour(store: Store, relation: str, since: datetime) -> int:
    hour = {"since": since, "until": since + timedelta(hours=1)}
    inside = f"started_at >= $since and started_at < $until and {_movable(relation)}"
    with store.write() as transaction:
        rows = transaction.tables(f"select * from {relation}_hot where {inside}", hour)
        count = _write(store, transaction, relation, (since, hour["until"]), rows, SEALED_LEVEL)
        transaction.execute(f"delete from {relation}_hot where {inside}", hour)
        refresh(store, transaction, relation)
    return count


def _movable(relation: str) -> str:
    """Which hot rows may be sealed: a request that is still to be settled would be written twice."""
    return "is_settled is distinct from false" if relation == "requests" else "true"


def _write(
    store: Store,
    transaction: Transaction,
    relation: str,
    period: tuple[datetime, datetime],
    rows: Iterable[pa.Table],
    level: int,
    *,
    is_settled: bool = True,
) -> int:
    """Writes rows of a period as a new part and lists it; gives how many there were."""
    since, until = period
    path, count = part_writer.write_sorted(fresh_path(store, relation, f"{since:{HOUR}}"), map(part_writer.packed, rows))
    if count:
        sync(path)
        list_part(transaction, relation, path, since, count, level=level, until=until, is_settled=is_settled)
    return count


def list_part(
    transaction: Transaction,
    relation: str,
    path: Path,
    since: datetime,
    count: int,
    *,
    level: int,
    until: datetime | None = None,
    is_settled: bool = True,
) -> None:
    """Makes a file of an hour's rows, or of those before `until`, part of the store, once the transaction commits; else it goes."""
    listed = {"relation": relation, "file": path.name, "since": since, "until": until or since + timedelta(hours=1), "rows": count}
    listed |= {"bytes": path.stat().st_size, "level": level, "is_settled": is_settled, **part_writer.bounds(path)}
    transaction.files.append(path)
    transaction.execute(
        'insert into parts (relation, "file", since, until, "rows", bytes, level, is_settled, first_start, last_start, last_end) '
        "values ($relation, $file, $since, $until, $rows, $bytes, $level, $is_settled, $first_start, $last_start, $last_end)",
        listed,
    )


def fresh_path(store: Store, relation: str, period: str) -> Path:
    """A name no file of that hour or day has or had, listed or not: a reader may still be at an older one, or somebody deleted it."""
    folder = store.parts / relation
    _note_numbers(store, relation, folder.glob(f"{period}-*.parquet"))
    number = store.part_numbers.get((relation, period), -1) + 1
    store.part_numbers[relation, period] = number
    return folder / f"{period}-{number:04d}.parquet"


def _note_numbers(store: Store, relation: str, paths: Iterable[Path]) -> None:
    for path in paths:
        period, number = path.stem.partition("-")[0], path.stem.rpartition("-")[2]
        if number.isdigit():
            store.part_numbers[relation, period] = max(int(number), store.part_numbers.get((relation, period), -1))


def refresh(store: Store, transaction: Transaction, relation: str) -> None:
    """Makes the view of a relation name the parts that are listed now."""
    rows = stored_sql(f"{relation}_hot", part_files(store, transaction, relation))
    if relation == "spans":
        transaction.execute(f"create or replace view stored_spans as {rows}")
        rows = whole_sql(relation, "stored_spans")
    transaction.execute(f"create or replace view {relation} as {rows}")


def sync(path: Path) -> None:
    """Puts a new file and its name on disk."""
    for target in (path, path.parent):
        handle = os.open(target, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
