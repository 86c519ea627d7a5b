"""Small parts of an hour in, larger ones of the same rows out: a question opens every part, and a new one is listed beside all of them.

A part that holds `LARGE_ROWS` is left alone. The new file is written before the transaction that lists it in the place of those it was
made of; their files are deleted once nobody reads them (`queries.sweep`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
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
FAR_TOO_MANY = 512  # those that are merged though exports wait to be loaded: a question then takes 0.2 s longer
FRESH = """
select
    "file" as name, "rows" as held, since, regexp_extract("file", '-([0-9a-f]+)-', 1) as layout,
    until > coalesce($closed::timestamptz, '-infinity') as is_open, is_open and "rows" < $small as is_small
from parts
where relation = $relation and level < 2 and "rows" < $large and "file" not in (select "file" from dirty_parts)
"""


@dataclass(frozen=True, slots=True)
class _Lot:
    """Parts of an hour and a size that have the same columns, the oldest first."""

    since: datetime
    names: list[str]
    rows: list[int]

    def chosen(self) -> list[str]:
        """As many as make a large part, at least two."""
        before = accumulate(self.rows, initial=0)
        return [name for place, (name, held) in enumerate(zip(self.names, before, strict=False)) if place < 2 or held < LARGE_ROWS]


def merge_next(store: Store, relation: str, many: int = MANY, closed: datetime | None = None) -> int:
    """Merges fresh parts of an hour that has `many` of a size; gives how many rows that were, 0 where no hour has.

    Of an hour that ended before `closed`, two are enough, whatever their sizes.
    """
    lot = _next_lot(store, relation, many, closed)
    if lot is None:
        return 0
    names, folder = lot.chosen(), store.parts / relation
    target, count = part_writer.write_sorted(fresh_path(folder, lot.since), _rows([folder / name for name in names]))
    sync(target)
    return _exchange(store, relation, lot, names, target, count)


def _next_lot(store: Store, relation: str, many: int, closed: datetime | None) -> _Lot | None:
    found = store.rows(
        f"select since, list(name order by name) as names, list(held order by name) as rows from ({FRESH}) where layout <> '' "
        "group by since, is_small, layout, is_open having count(*) >= if(is_open, $many, 2) "
        "order by is_open desc, is_small desc, since limit 1",
        {"relation": relation, "large": LARGE_ROWS, "small": SMALL_ROWS, "many": many, "closed": closed},
    )
    return _Lot(**found[0]) if found else None


def _exchange(store: Store, relation: str, lot: _Lot, names: list[str], target: Path, count: int) -> int:
    """Lists the new part in the place of those it was made of; gives its rows, 0 where one of them was replaced meanwhile."""
    with store.write() as transaction:
        listed = transaction.frame('select "file" from parts where relation = $relation', {"relation": relation})["file"].to_list()
        if not set(names) <= set(listed):
            target.unlink()
            return 0
        stored_at = max((target.parent / name).stat().st_mtime for name in names)
        os.utime(target, (stored_at, stored_at))  # retention counts from when rows were stored
        list_part(transaction, relation, target, lot.since, count, level=1)
        unlist(store, transaction, relation, names)
    return count


def _rows(sources: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of some parts of one layout, a few at a time."""
    for source in sources:
        with pq.ParquetFile(source) as reader:
            for batch in reader.iter_batches(ROWS_AT_ONCE):
                yield pa.Table.from_batches([batch])
