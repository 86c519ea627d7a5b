"""Large batches of rows in, part files out at once: they never pass through the hot table, whose log and checkpoints cost more.

As with sealing, a file is written and synced before the transaction that lists it commits; one that is not listed is no part of the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from queries import part_writer
from queries.sealing import HOUR, fresh_path, list_part, refresh, sync
from queries.store import Store, Transaction

MIN_ROWS = 2_048  # of an hour: fewer go into the hot table; so many take half the time as a part, assembly included
HOUR_US, BLOCK_US = 3_600_000_000, 300_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Added:
    """Where rows went: the names of new parts, which rows stand in them, and the others, which are in the hot table."""

    parts: list[str]
    in_part: npt.NDArray[np.bool_]
    hot: pa.Table


def add(store: Store, transaction: Transaction, relation: str, rows: pa.Table, *, is_settled: bool = True) -> Added:
    """Stores rows of a sealed relation: each hour's as a part where there are many, else in the hot table.

    `is_settled` is false of requests that are still to be settled: no part of them reaches over the end of a block of theirs, which would
    have to wait for all of it.
    """
    period_us = HOUR_US if is_settled else BLOCK_US
    periods = np.asarray(rows["started_at"].cast(pa.int64())) // period_us
    found, places, counts = np.unique(periods, return_inverse=True, return_counts=True)
    names = [
        write(
            store,
            transaction,
            relation,
            rows if len(found) == 1 else rows.filter(pa.array(places == place)),
            period * period_us // HOUR_US,
            is_settled,
        )
        for place, period in enumerate(found.tolist())
        if counts[place] >= MIN_ROWS
    ]
    in_part = (counts >= MIN_ROWS)[places]
    hot = rows.filter(pa.array(~in_part)) if names else rows
    if hot.num_rows:
        transaction.insert(f"{relation}_hot", hot)
    if names:
        refresh(store, transaction, relation)
    return Added(names, in_part, hot)


def write(store: Store, transaction: Transaction, relation: str, rows: pa.Table, hour: int, is_settled: bool = True) -> str:
    """Writes rows of one hour, counted since 1970, as a part and lists it; the view is not refreshed. Gives the part's name."""
    since = EPOCH + timedelta(hours=hour)
    path = fresh_path(store, relation, f"{since:{HOUR}}")
    path.parent.mkdir(exist_ok=True)
    path = part_writer.write(path, part_writer.packed(rows))
    sync(path)
    list_part(transaction, relation, path, since, rows.num_rows, level=0, is_settled=is_settled)
    return path.name


def read(store: Store, relation: str, name: str, columns: list[str]) -> pa.Table:
    """Some columns of a part."""
    return pq.read_table(store.parts / relation / name, columns=columns)
