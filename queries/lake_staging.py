"""Rows that one task leaves for others in; the same rows, by the part that each of them asks for, out. No commit names them.

A file of parts lies in the folder of the lake's table that its rows are like. Whoever has used it drops it; one that is left over goes with
what the table's `vacuum` deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from queries import lake_files
from queries.lake import Lake
from queries.lake_commits import told
from queries.lake_tables import part_name

TABLE = "requests"


@dataclass(frozen=True, slots=True)
class Staged:
    """A file of parts: its path, the rows' columns and number, and the row group of each part; one without rows has none."""

    path: str
    shape: pa.Schema
    groups: tuple[int | None, ...]
    rows: int


def put(lake: Lake, hour: datetime, parts: Sequence[pa.Table]) -> Staged:
    """Writes tables of one shape, each a part.

    Raises:
        LakeError: the lake cannot be written.
    """
    shape = parts[0].schema
    sink, groups = pa.BufferOutputStream(), list[int | None]()
    with pq.ParquetWriter(sink, shape, compression="zstd", compression_level=1, write_statistics=False) as writer:
        for part in parts:
            groups.append(sum(one is not None for one in groups) if part.num_rows else None)
            if part.num_rows:
                writer.write_table(part, row_group_size=part.num_rows)
    place = lake.place(TABLE)
    with told(place.uri):
        return Staged(place.put(part_name(hour), sink.getvalue()), shape, tuple(groups), sum(part.num_rows for part in parts))


def get(lake: Lake, staged: Staged, parts: Sequence[int]) -> pa.Table:
    """The rows of some parts of a file.

    Raises:
        LakeError: it cannot be read, or somebody dropped it.
    """
    wanted = [group for group in (staged.groups[part] for part in parts) if group is not None]
    place = lake.place(TABLE)
    with told(place.uri):
        found = lake_files.read_groups(place.filesystem(), staged.path, staged.shape.names, wanted)
        return pa.concat_tables([staged.shape.empty_table(), *(rows.cast(staged.shape) for rows in found)])


def drop(lake: Lake, staged: Sequence[Staged]) -> None:
    """Deletes files that were used.

    Raises:
        LakeError: one cannot be deleted.
    """
    place = lake.place(TABLE)
    with told(place.uri):
        for one in staged:
            place.drop(one.path)
