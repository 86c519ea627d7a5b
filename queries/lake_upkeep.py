"""An hour of a lake's table in, the same rows in few files out, each row once; and which hours ask for it.

Collectors write a small file with each commit, and a sender that was not answered sends again, maybe to another collector. Of copies the
one that was received first stays. What is rewritten is told to nobody as a change: readers tell copies apart by the same rule meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from queries.lake import Lake
from queries.lake_files import LakeFile
from queries.lake_tables import hour_end, hour_name, known

TARGET_BYTES = 128 * 1024 * 1024
MOST_FILES = 32  # of an hour that is not over yet, before they are merged
RECEIVED = "received_at"
SIGNALS = {"spans": "traces", "samples": "metrics", "evaluations": "evaluations", "imported_requests": "requests"}
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Tidied:
    """What became of an hour: how many files of it were merged, into how many, and how many copies went."""

    merged: int = 0
    into: int = 0
    copies: int = 0


def due(lake: Lake, table: str, now: datetime) -> list[datetime]:
    """The hours of a table with files to be merged, oldest first: of one that is over any, of one that is not many."""
    files: dict[str, list[LakeFile]] = {}
    for file in lake.files(table):
        files.setdefault(file.hour, []).append(file)
    found = []
    for name, held in sorted(files.items()):
        end, waiting = hour_end(name), sum(not file.is_tidy for file in held)
        is_alone = len(held) == 1 and not known(table).key
        if end is not None and not is_alone and waiting >= (1 if end <= now else MOST_FILES):
            found.append(end - timedelta(hours=1))
    return found


def tidy(lake: Lake, table: str, hour: datetime) -> Tidied:
    """Merges the small files of an hour, and takes copies away; nothing happens where all is tidy. Twice is the same as once.

    Raises:
        LakeError: the lake cannot be read or written, or another has rewritten the same files meanwhile.
    """
    files = [file for file in lake.files(table) if file.hour == hour_name(hour)]
    if all(file.is_tidy for file in files):
        return Tidied()
    copies = _copies(lake, table, files)
    chosen = [file for file in files if not file.is_tidy or file.bytes < TARGET_BYTES // 2 or copies[file.path].any()]
    groups = list(_groups(chosen))
    gone: list[pa.Table] = []

    def merged() -> Iterator[tuple[str, pa.Table]]:
        for group in groups:
            rows = _merged(lake, table, group, copies, gone)
            if rows.num_rows:
                yield group[0].hour, rows

    lake.rewrite(table, chosen, merged())
    if gone:
        lake.append("ingest_entries", _counted_again(pa.concat_tables(gone), SIGNALS[table]))
    return Tidied(len(chosen), len(groups), sum(int(mask.sum()) for mask in copies.values()))


def _copies(lake: Lake, table: str, files: Sequence[LakeFile]) -> dict[str, Mask]:
    """Which rows of each file are copies of rows that were received before."""
    key = known(table).key
    counts = [file.rows for file in files]
    if not key:
        return {file.path: np.zeros(file.rows, np.bool_) for file in files}
    order = [RECEIVED] if table in SIGNALS else []
    rows = pa.concat_tables([lake.read(table, [*key, *(one for one in order if one not in key)], files=[file]) for file in files])
    is_copy = np.zeros(rows.num_rows, np.bool_)
    is_copy[_later(rows.append_column("place", pa.array(np.arange(rows.num_rows))), key, order)] = True
    return dict(zip([file.path for file in files], np.split(is_copy, np.cumsum(counts)[:-1]), strict=True))


def _later(rows: pa.Table, key: Sequence[str], order: Sequence[str]) -> npt.NDArray[np.int64]:
    """The places of the rows of which one with the same key stands before them."""
    keys, first = ", ".join(f'"{name}"' for name in key), ", ".join([*order, "place"])
    connection = duckdb.connect()
    try:
        connection.register("rows_of", rows)
        found = connection.sql(f"select place from rows_of qualify row_number() over (partition by {keys} order by {first}) > 1")
        places: npt.NDArray[np.int64] = np.asarray(found.to_arrow_table()["place"], np.int64)
    finally:
        connection.close()
    return places


def _groups(files: Sequence[LakeFile]) -> Iterator[list[LakeFile]]:
    """The files in groups of about the size that one is to have."""
    group: list[LakeFile] = []
    for file in files:
        if group and sum(one.bytes for one in group) + file.bytes > TARGET_BYTES:
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def _merged(lake: Lake, table: str, group: Sequence[LakeFile], copies: dict[str, Mask], gone: list[pa.Table]) -> pa.Table:
    """The rows of a group without copies, by their time; what went of each sender is added to `gone`."""
    kept: list[pa.Table] = []
    for file in group:
        rows, is_copy = lake.read(table, files=[file]), pa.array(copies[file.path])
        kept.append(rows.filter(pa.compute.invert(is_copy)))
        if table in SIGNALS and is_copy.true_count:
            gone.append(rows.select(["sender", RECEIVED]).filter(is_copy))
    merged, time = pa.concat_tables(kept), known(table).time
    return merged.sort_by(time) if time is not None else merged


def _counted_again(gone: pa.Table, signal: str) -> pa.Table:
    """Rows of `ingest_entries` that make duplicates of what was counted as stored."""
    minutes = pa.compute.floor_temporal(gone[RECEIVED], unit="minute")
    grouped = gone.drop_columns(RECEIVED).append_column("minute", minutes).group_by(["sender", "minute"]).aggregate([([], "count_all")])
    counts, nothing = grouped["count_all"], pa.array([0] * grouped.num_rows, pa.int64())
    columns: dict[str, pa.Array] = dict.fromkeys(("received", "rejected", "dropped", "pending", "late"), nothing)
    columns["reasons"] = pa.array([[]] * grouped.num_rows, pa.map_(pa.string(), pa.int64()))
    names = {"sender": grouped["sender"], "minute": grouped["minute"], "signal": pa.array([signal] * grouped.num_rows)}
    return pa.table({**names, **columns, "stored": pa.compute.negate(counts), "duplicate": counts})
