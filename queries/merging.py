"""Small parts of an hour in, larger ones of the same rows out: a question opens every part, and a new one is listed beside all of them.

A part of `LARGE_ROWS` is left alone. The new file is written before the transaction that lists it in the place of those it was
made of; their files are deleted once nobody reads them (`queries.sweep`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from queries import part_writer
from queries.sealing import HOUR, fresh_path, list_part, sync, unlist
from queries.store import Store

LARGE_ROWS = {"spans": 500_000, "requests": 250_000}  # a late version of a request has the part of the older one written anew
SMALL_ROWS = 32_768
ROWS_AT_ONCE = 10_000
FRESH = """
select
    "file" as name, "rows" as held, since, regexp_extract("file", '-([0-9a-f]+)-', 1) as layout,
    until > coalesce($closed::timestamptz, '-infinity') as is_open, is_open and "rows" < $small as is_small, is_settled
from parts
where relation = $relation and level < 2 and "rows" < $large and "file" not in (select "file" from dirty_parts)
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """How many parts of an hour are merged: those of one size while it is open, those of any once it is closed."""

    in_open: int
    in_closed: int = 2


AT_REST = Pace(16)
IN_A_HURRY = Pace(512, 32)  # exports wait to be loaded: with 500 more parts a question takes 0.2 s longer, and listing another 15 ms


@dataclass(frozen=True, slots=True)
class _Lot:
    """Parts of an hour and a size that have the same columns, the oldest first."""

    since: datetime
    names: list[str]
    rows: list[int]
    is_settled: bool

    def chosen(self, large_rows: int) -> list[str]:
        """As many as make a large part, at least two."""
        before = accumulate(self.rows, initial=0)
        return [name for place, (name, held) in enumerate(zip(self.names, before, strict=False)) if place < 2 or held < large_rows]


def merge_next(store: Store, relation: str, pace: Pace = AT_REST, closed: datetime | None = None) -> int:
    """Merges fresh parts of an hour that has many, as `pace` says; gives how many rows that were, 0 where no hour has.

    An hour is closed that ended before `closed`.
    """
    lot = _next_lot(store, relation, pace, closed)
    if lot is None:
        return 0
    names, folder = lot.chosen(LARGE_ROWS[relation]), store.parts / relation
    target, count = part_writer.write_sorted(fresh_path(store, relation, f"{lot.since:{HOUR}}"), _rows([folder / name for name in names]))
    sync(target)
    return _exchange(store, relation, lot, names, target, count)


def _next_lot(store: Store, relation: str, pace: Pace, closed: datetime | None) -> _Lot | None:
    found = store.rows(
        f"select since, list(name order by name) as names, list(held order by name) as rows, is_settled from ({FRESH}) where layout <> '' "
        "group by since, is_small, layout, is_open, is_settled having count(*) >= if(is_open, $in_open, $in_closed) "
        "order by is_open desc, is_small desc, since limit 1",
        {"relation": relation, "large": LARGE_ROWS[relation], "small": SMALL_ROWS, "closed": closed, **asdict(pace)},
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
        list_part(transaction, relation, target, lot.since, count, level=1, is_settled=lot.is_settled)
        unlist(store, transaction, relation, names)
    return count


def _rows(sources: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of some parts of one layout, a few at a time."""
    for source in sources:
        with pq.ParquetFile(source, pre_buffer=False) as reader:
            for batch in reader.iter_batches(ROWS_AT_ONCE, use_threads=False):  # half the memory, and no slower
                yield pa.Table.from_batches([batch])
