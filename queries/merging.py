"""Small parts of an hour in, larger ones of the same rows out: a question opens every part, and a new one is listed beside all of them.

A part that holds `LARGE_ROWS` is left alone. The new file is written before the transaction that lists it in the place of those it was
made of; their files are deleted once nobody reads them (`queries.sweep`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from queries import part_writer
from queries.sealing import fresh_path, list_part, sync, unlist
from queries.store import Store

LARGE_ROWS = 500_000
SMALL_ROWS = 32_768
ROWS_AT_ONCE = 25_000
MANY = 16  # parts of a size that are merged when there is time
FAR_TOO_MANY = 64  # those that are merged though exports wait to be loaded
FRESH = 'relation = $relation and level < 2 and "file" not in (select "file" from dirty_parts) and "rows" < $large'


@dataclass(frozen=True, slots=True)
class _Lot:
    since: datetime
    is_small: bool


def merge_next(store: Store, relation: str, many: int = MANY) -> int:
    """Merges the fresh parts of an hour that has `many` of a size, or enough for a large one; gives how many rows, 0 where none has."""
    lot = _next_lot(store, relation, many)
    if lot is None:
        return 0
    names = list(_chosen(store, relation, lot))
    folder = store.parts / relation
    target = fresh_path(folder, lot.since)
    count = part_writer.write_sorted(target, _rows([folder / name for name in names]))
    sync(target)
    return _exchange(store, relation, lot, names, target, count)


def _next_lot(store: Store, relation: str, many: int) -> _Lot | None:
    found = store.rows(
        f'select since, "rows" < $small as is_small from parts where {FRESH} '
        "group by all having count(*) >= $many order by is_small desc, since limit 1",
        {"relation": relation, "large": LARGE_ROWS, "small": SMALL_ROWS, "many": many},
    )
    return _Lot(found[0]["since"], found[0]["is_small"]) if found else None


def _chosen(store: Store, relation: str, lot: _Lot) -> Iterator[str]:
    """The oldest parts of a lot, up to a large part's rows, at least two."""
    alike = f'{FRESH} and since = $since and ("rows" < $small) = $is_small'
    asked = f'select "file" as name, "rows" as held from parts where {alike} order by name'
    wanted = {"relation": relation, "large": LARGE_ROWS, "small": SMALL_ROWS, "since": lot.since, "is_small": lot.is_small}
    total = 0
    for place, part in enumerate(store.rows(asked, wanted)):
        if total >= LARGE_ROWS and place >= 2:
            return
        total += part["held"]
        yield part["name"]


def _exchange(store: Store, relation: str, lot: _Lot, names: list[str], target: Path, count: int) -> int:
    """Lists the new part in the place of those it was made of; gives its rows, 0 where one of them was replaced meanwhile."""
    with store.write() as transaction:
        listed = transaction.frame('select "file" from parts where relation = $relation', {"relation": relation})["file"].to_list()
        if not set(names) <= set(listed):
            target.unlink()
            return 0
        list_part(transaction, relation, target, lot.since, count, level=1)
        unlist(store, transaction, relation, names)
    return count


def _rows(sources: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of some parts, a few at a time, all with the columns that any of them has."""
    schema = pa.unify_schemas([pq.read_schema(source) for source in sources], promote_options="permissive")
    for source in sources:
        with pq.ParquetFile(source) as reader:
            for batch in reader.iter_batches(ROWS_AT_ONCE):
                yield _with_columns(pa.Table.from_batches([batch]), schema)


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of a schema, null where they have none."""
    columns = [rows[field.name] if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(columns, names=schema.names).cast(schema)
