"""A lake's address in, its files written, read and synced: a local folder, or what deltalake reaches by URI.

A local file is synced before it is named in a commit; an object store answers once an object is kept.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from queries import part_writer

TIDY = "tidy-"  # how the name of a file begins that others were merged into


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One Parquet file of a table as its newest version has it: never changed once it is there.

    `path` stands below the table's folder, `uri` is the whole; `first` and `last` are the times in it, where they are known, `written_at`
    is when it was written.
    """

    path: str
    uri: str
    hour: str
    rows: int
    bytes: int
    first: datetime | None
    last: datetime | None
    written_at: datetime | None = None

    @property
    def is_tidy(self) -> bool:
        """Whether its rows were looked through for copies and merged already."""
        return self.path.rpartition("/")[2].startswith(TIDY)


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where one table of a lake lies. `folder` is None where that is no local folder."""

    uri: str
    options: Mapping[str, str]
    folder: Path | None

    def put(self, hour: str, content: pa.Buffer, *, is_tidy: bool = False, kind: str = "zstd.parquet") -> str:
        """Writes a new file of an hour, durably; gives its path below the table. Raises OSError."""
        path = f"hour={_as_folder(hour)}/{TIDY if is_tidy else ''}{uuid.uuid4().hex}.{kind}"
        if self.folder is None:
            self._put_object(path, content)
        else:
            _write_synced(self.folder, self.folder / path, content)
        return path

    def _put_object(self, path: str, content: pa.Buffer) -> None:
        """Writes one object. Not through Arrow's file system, which hands on buffers where the library takes bytes."""
        from deltalake._internal import DeltaFileSystemHandler

        stream: Any = DeltaFileSystemHandler(self.uri, dict(self.options)).open_output_stream(path, None)
        with closing(stream):
            stream.write(content.to_pybytes())

    def drop(self, path: str) -> None:
        """Deletes a file that no commit names. Raises OSError."""
        if self.folder is None:
            from deltalake._internal import DeltaFileSystemHandler

            DeltaFileSystemHandler(self.uri, dict(self.options)).delete_file(path)
        else:
            (self.folder / path).unlink(missing_ok=True)

    def filesystem(self) -> pafs.FileSystem:
        """The files below this table, to Arrow."""
        if self.folder is not None:
            return pafs.SubTreeFileSystem(str(self.folder), pafs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))

    def sync(self, names: Iterable[str]) -> None:
        """Makes files of the log durable where that is for us to do. Those that are gone already need it no longer."""
        if self.folder is None:
            return
        for name in names:
            with suppress(FileNotFoundError):
                _sync(self.folder / "_delta_log" / name)
        _sync(self.folder / "_delta_log")


def as_parquet(rows: pa.Table, time: str | None) -> pa.Buffer:
    """The rows as a Parquet file, in memory, written as parts are; readers may skip row groups by `time`."""
    encodings, with_dictionary = part_writer.encodings_of(rows.schema)
    filters = part_writer.filters_of(rows.schema, min(rows.num_rows, part_writer.ROWS_A_GROUP))
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows, sink, row_group_size=part_writer.ROWS_A_GROUP, compression="zstd", compression_level=part_writer.ZSTD_LEVEL,
        use_dictionary=with_dictionary, column_encoding=encodings, write_statistics=[time] if time else False, store_schema=False,
        bloom_filter_options=filters,
    )  # fmt: skip
    return sink.getvalue()


def read_file(filesystem: pafs.FileSystem, path: str, columns: list[str] | None) -> pa.Table:
    """One Parquet file's rows; columns that it lacks are left out."""
    with filesystem.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        chosen = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
        return file.read(chosen, use_threads=False)


def read_groups(filesystem: pafs.FileSystem, path: str, columns: list[str], groups: Iterable[int] | None = None) -> Iterator[pa.Table]:
    """One Parquet file's rows, a row group at a time, or these alone; `a.b` is the field `b` of a column, and what it lacks is left out."""
    with filesystem.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        there = set(file.schema_arrow.names)
        chosen = [name for name in columns if name.partition(".")[0] in there]
        for group in range(file.num_row_groups) if groups is None else groups:
            yield file.read_row_group(group, chosen, use_threads=False)


def table_place(uri: str, options: Mapping[str, str], table: str) -> TablePlace:
    """Where a table of the lake at a URI lies."""
    folder = local_folder(uri)
    if folder is None:
        return TablePlace(f"{uri.rstrip('/')}/{table}", options, None)
    return TablePlace(str(folder / table), {}, folder / table)


def local_folder(uri: str) -> Path | None:
    """The folder that a URI means; None where it is of an object store."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).absolute()
    return None if "://" in uri else Path(uri).absolute()


def _as_folder(name: str) -> str:
    return "".join(one if one.isalnum() or one in "-_." else "-" for one in name)


def _write_synced(table: Path, path: Path, content: pa.Buffer) -> None:
    is_new = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb", buffering=0) as file:
            rest: Any = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)  # what was written of it would take the last space of a full disk for a day
        raise
    _sync(path.parent)
    if is_new:
        _sync(table)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
