"""Rows that one task leaves for others in; the same rows, by the part that each of them asks for, out. No commit names them.

A file of parts lies in the folder of the lake's table that its rows are like. Whoever has used it drops it; one that is left over goes with
what the table's `vacuum` deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from queries.lake import Lake
from queries.lake_errors import told
from queries.lake_tables import part_name

TABLE = "requests"
KIND = "parts.arrow"


@dataclass(frozen=True, slots=True)
class Staged:
    """A file of parts in Arrow's format: its path, of each part the first of its batches and the one behind them, and all rows."""

    path: str
    batches: tuple[tuple[int, int], ...]
    rows: int


def put(lake: Lake, hour: datetime, parts: Sequence[pa.Table]) -> Staged:
    """Writes tables of one shape, each a part.

    Raises:
        LakeError: the lake cannot be written.
    """
    shape = parts[0].schema
    sink, batches, count = pa.BufferOutputStream(), list[tuple[int, int]](), 0
    with pa.ipc.new_file(sink, shape, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for part in parts:
            held = part.combine_chunks().to_batches()
            batches.append((count, count + len(held)))
            count += len(held)
            for batch in held:
                writer.write_batch(batch)
    place = lake.place(TABLE)
    with told(place.uri):
        return Staged(place.put(part_name(hour), sink.getvalue(), kind=KIND), tuple(batches), sum(part.num_rows for part in parts))


def get(lake: Lake, staged: Staged, parts: Sequence[int]) -> pa.Table:
    """The rows of some parts of a file.

    Raises:
        LakeError: it cannot be read, or somebody dropped it.
    """
    place = lake.place(TABLE)
    with told(place.uri), place.filesystem().open_input_file(staged.path) as source:
        file = pa.ipc.open_file(source)
        wanted = [batch for part in parts for batch in range(*staged.batches[part])]
        return pa.Table.from_batches([file.get_batch(batch) for batch in wanted], file.schema)


def drop(lake: Lake, staged: Sequence[Staged]) -> None:
    """Deletes files that were used.

    Raises:
        LakeError: one cannot be deleted.
    """
    place = lake.place(TABLE)
    with told(place.uri):
        for one in staged:
            place.drop(one.path)
