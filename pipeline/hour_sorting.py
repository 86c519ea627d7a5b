"""Files of a lake around an hour that is made in parts in; their rows by the part that asks for them, in files for later tasks, out.

A part then reads its own rows alone: however many parts there are, a row is read from the lake once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from pipeline import hour_links, hour_spans
from pipeline.hour_spans import AROUND, FAR, HOUR
from pipeline.surroundings import FIRST
from queries import lake_staging
from queries.lake import Lake
from queries.lake_files import LakeFile
from queries.lake_rows import between, conformed
from queries.lake_staging import Staged
from queries.lake_tables import columns, known

BUCKETS = 64  # of replicas
ROWS_A_FILE = 200_000  # that are held at once while they are sorted
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Whole:
    """An hour that is read in so many parts: when the last of its spans ends, and the traces that moved to another part."""

    hour: datetime
    parts: int
    until: datetime | None
    moved: Staged
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows of a table, by part."""

    table: str
    staged: tuple[Staged, ...]
    cpu_s: float


def link(lake: Lake, hour: datetime, parts: int) -> Whole:
    """What has to be known of an hour before it is sorted. Raises LakeError."""
    began_s = time.process_time()
    found = hour_links.linked(lake, hour, parts)
    return Whole(hour, parts, found.until, lake_staging.put(lake, hour, [found.moved]), time.process_time() - began_s)


def groups(lake: Lake, hour: datetime, rows: int) -> Iterator[tuple[str, tuple[LakeFile, ...]]]:
    """(a table, files of it for a task to sort), of about so many rows each. Raises LakeError."""
    for table, (since, until) in periods(hour).items():
        held: list[LakeFile] = []
        for file in lake.files(table, since, until):
            if held and sum(one.rows for one in held) + file.rows > rows:
                yield table, tuple(held)
                held = []
            held.append(file)
        if held:
            yield table, tuple(held)


def sort(lake: Lake, whole: Whole, table: str, files: Sequence[LakeFile]) -> Sorted:
    """Sorts rows of some files: spans and imported requests by the parts of the hour, samples by replica. Raises LakeError."""
    began_s = time.process_time()
    count = BUCKETS if table == "samples" else whole.parts
    moved = lake_staging.get(lake, whole.moved, [0]) if table == "spans" else hour_links.MOVED.empty_table()
    shape, time_column = columns_of(table), known(table).time or ""
    files_of, bits = list[Staged](), list[list[pa.Table]]()

    def leave() -> None:
        if bits:
            files_of.append(lake_staging.put(lake, whole.hour, [pa.concat_tables([some[part] for some in bits]) for part in range(count)]))
        bits.clear()

    for bit in lake.bits(table, shape.names, files):
        rows = between(conformed(bit, shape), time_column, *periods(whole.hour)[table])
        bits.append(apart(rows, _places(table, rows, whole, moved), count))
        if sum(part.num_rows for some in bits for part in some) >= ROWS_A_FILE:
            leave()
    leave()
    return Sorted(table, tuple(files_of), time.process_time() - began_s)


def columns_of(table: str) -> pa.Schema:
    """What is asked of a table."""
    return pa.schema([columns(table).field(name) for name in hour_spans.COLUMNS]) if table == "spans" else columns(table)


def periods(hour: datetime) -> dict[str, tuple[datetime, datetime]]:
    """Of which time rows of each table matter to an hour."""
    return {
        "spans": (hour - FAR, hour + HOUR + FAR),
        "imported_requests": (hour - AROUND, hour + HOUR + AROUND),
        "samples": (hour - FIRST - timedelta(seconds=300), hour + HOUR + AROUND),
    }


def _places(table: str, rows: pa.Table, whole: Whole, moved: pa.Table) -> Ints:
    if table == "samples":
        return buckets(pl.Series(rows["replica"]))
    return hour_links.parts_of(hour_links.hashes(rows["trace_id" if table == "spans" else "request_id"]), moved, whole.parts)


def apart(rows: pa.Table, places: Ints, count: int) -> list[pa.Table]:
    """The rows in `count` tables, by the place of each."""
    ordered = rows.take(pa.array(np.argsort(places, kind="stable")))
    ends = np.cumsum(np.bincount(places, minlength=count))
    return [ordered.slice(end - length, length) for end, length in zip(ends, np.diff(ends, prepend=0), strict=True)]


def buckets(names: pl.Series) -> Ints:
    """The bucket of each name."""
    found: Ints = (names.fill_null("").hash() % BUCKETS).cast(pl.Int64).to_numpy()
    return found
