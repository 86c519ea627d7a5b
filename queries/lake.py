"""The address of a lake in; its tables appended to, replaced by the hour, and read out. Only this package speaks to Delta.

Any number of processes may write at once, and nobody owns a file: a commit that meets another's is made anew. Every table is partitioned by
`hour`, text `YYYY-MM-DDTHH` in UTC of its time column.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from queries import lake_files, part_writer
from queries.lake_commits import RETENTION, AddedFile, Change, LakeLog, StaleMarkError, added_file
from queries.lake_errors import BrokenFileError, LakeError, told, told_of_file
from queries.lake_files import LakeFile, TablePlace
from queries.lake_listing import changed_parts, is_over, listed_files, may_hold
from queries.lake_rows import between, by_hour, conformed
from queries.lake_tables import TIMELESS, columns, hour_start, known, part_name

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["BrokenFileError", "Lake", "LakeError", "LakeFile", "StaleMarkError"]
READERS = 8
NO_MARKS: Mapping[str, int] = {}
Part = datetime | str


class Lake:
    """The tables of a lake, by the names of `lake_tables.TABLES`. Safe from any thread; a table is made by its first rows."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self.uri = uri
        self.options = dict(options)
        self._lock = threading.Lock()
        self._logs: dict[str, LakeLog] = {}
        self._listings: dict[str, tuple[int, list[LakeFile]]] = {}

    @classmethod
    def open(cls, uri: str, options: Mapping[str, str] | None = None) -> Lake:
        """The lake at a folder or a URI such as `s3://bucket/prefix`; nothing is made or read yet.

        Raises:
            LakeError: what reads a lake is not installed.
        """
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            msg = f"{uri}: a lake is read with the package deltalake, which is missing: pip install 'leverwatch[cluster]'"
            raise LakeError(msg) from error
        return cls(uri, options or {})

    def append(self, table: str, rows: pa.Table, marks: Mapping[str, int] = NO_MARKS) -> int:
        """Adds rows durably, and moves marks in the same commit; gives its version. Without rows and marks nothing is committed.

        Raises:
            StaleMarkError: a mark stands there already or beyond; nothing was added.
            LakeError: the lake cannot be written.
        """
        if not rows.num_rows and not marks:
            return self.version(table)
        change = Change(self._written(table, rows), marks=marks)
        return self._log(table).commit(lambda _: change)

    def replace(self, table: str, rows: pa.Table, hours: Sequence[Part], marks: Mapping[str, int] = NO_MARKS) -> int:
        """Puts rows in the place of all that these hours hold, in one commit; without rows they are emptied. Gives the version.

        Of a table without a time, `hours` names the one partition that the rows are of. Two that replace one hour never both stand.

        Raises:
            ValueError: a row lies in none of the hours.
            StaleMarkError, LakeError: as `append`.
        """
        names = [part_name(hour) for hour in hours]
        return self.put_in_place(table, self._written(table, rows, names), names, marks)

    def written(self, table: str, rows: pa.Table, hour: datetime) -> list[AddedFile]:
        """Writes rows of an hour into a file that no commit names yet: nobody reads it until `put_in_place` names it.

        Raises:
            ValueError: a row lies in another hour.
            LakeError: the lake cannot be written.
        """
        return self._written(table, rows, [part_name(hour)])

    def put_in_place(self, table: str, added: Sequence[AddedFile], hours: Sequence[Part], marks: Mapping[str, int] = NO_MARKS) -> int:
        """Puts files that were written in the place of all that these hours hold, in one commit; gives the version.

        Raises:
            StaleMarkError, LakeError: as `append`.
        """
        names = [part_name(hour) for hour in hours]
        turns = [f"replace {name}" for name in names]  # two commits that move the same mark meet, also where neither removes a file

        def change(newest: DeltaTable) -> Change:
            files = [file for file in self._listed(table, newest) if file.hour in names]
            return Change(added, files, {**{turn: (newest.transaction_version(turn) or 0) + 1 for turn in turns}, **marks})

        return self._log(table).commit(change)

    def rewrite(self, table: str, files: Sequence[LakeFile], rows: Iterable[tuple[str, pa.Table]]) -> int:
        """Puts rows, each table a new file of its hour, in the place of files that hold the same; gives the version.

        It is told to nobody as a change.

        Raises:
            LakeError: another took one of the files away meanwhile.
        """
        added = [self._file(table, hour, part, is_tidy=True) for hour, part in rows]

        def change(newest: DeltaTable) -> Change:
            there = {file.path for file in self._listed(table, newest)}
            if any(file.path not in there for file in files):
                msg = f"{self._log(table).place.uri}: files that were to be rewritten were replaced meanwhile"
                raise LakeError(msg)
            return Change(added, files, is_data=False, what="rewrite")

        return self._log(table).commit(change)

    def remove(self, table: str, before: datetime, written_before: datetime | None = None) -> int:
        """Takes away the hours that ended by a moment; gives how many files that were. They are not told as changed.

        With `written_before` those files alone that were written by then: history stored today stays as long as what happened today.

        Raises:
            LakeError: the lake cannot be read or written.
        """
        gone: list[LakeFile] = []

        def change(newest: DeltaTable) -> Change:
            gone[:] = [file for file in self._listed(table, newest) if is_over(file, before, written_before)]
            return Change(removes=gone, what=RETENTION)

        if any(is_over(file, before, written_before) for file in self.files(table)):
            self._log(table).commit(change)
        return len(gone)

    def vacuum(self, table: str, keep: timedelta) -> int:
        """Deletes the files that no row has been read from for `keep`, an hour at least; gives how many.

        Readers that are slower, and whoever asks for an older version, do not find them any more.

        Raises:
            ValueError: less than an hour is to be kept: what is written and not committed yet would go.
            LakeError: the lake cannot be read or written.
        """
        if keep < timedelta(hours=1):
            msg = f"vacuum {table}: keep is {keep}; an hour at least is taken"
            raise ValueError(msg)
        return self._log(table).vacuum(keep)

    def mark(self, table: str, name: str) -> int | None:
        """Where a mark stands; None where it was never set."""
        newest = self._log(table).newest()
        return None if newest is None else newest.transaction_version(name)

    def version(self, table: str) -> int:
        """The number of the newest commit; -1 where there is no such table yet."""
        newest = self._log(table).newest()
        return -1 if newest is None else newest.version()

    def identity(self, table: str) -> str:
        """What a table was given when it was made, and no other has; empty where there is no such table yet."""
        newest = self._log(table).newest()
        return "" if newest is None else str(newest.metadata().id)

    def changed(self, table: str, after_version: int) -> set[datetime]:
        """The hours whose rows later commits changed, but for those that retention took away.

        Where the log does not reach back so far, every hour that has rows.
        """
        found: set[str] = set()
        log = self._log(table)
        versions = range(after_version + 1, self.version(table) + 1)
        with told(log.place.uri), ThreadPoolExecutor(READERS) as pool:
            for actions in pool.map(log.actions, versions):
                if actions is None:
                    found |= {file.hour for file in self.files(table)}
                    break
                found |= changed_parts(actions)
        return {start for start in map(hour_start, found) if start is not None}

    def files(self, table: str, since: datetime | None = None, until: datetime | None = None) -> list[LakeFile]:
        """The files that may hold rows of `[since, until)`, by hour and then by name."""
        newest = self._log(table).newest()
        if newest is None:
            return []
        listed = self._listed(table, newest)
        if known(table).time is None:
            return listed
        return [file for file in listed if may_hold(file, since, until)]

    def read(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        files: Sequence[LakeFile] | None = None,
    ) -> pa.Table:
        """The rows of `[since, until)`, in no promised order; `files` reads these alone. Copies of one row are not told apart here.

        Raises:
            BrokenFileError: a file is gone, or is no Parquet file.
            LakeError: a file cannot be read.
        """
        shape = _chosen(table, columns)
        time_column = known(table).time
        needed = shape.names if time_column is None or time_column in shape.names else [*shape.names, time_column]
        filesystem = self._log(table).place.filesystem()

        def taken(file: LakeFile) -> pa.Table:
            with told_of_file(file.uri):
                rows = lake_files.read_file(filesystem, file.path, needed)
            return conformed(rows if time_column is None else between(rows, time_column, since, until), shape)

        chosen = self.files(table, since, until) if files is None else files
        with told(self._log(table).place.uri), ThreadPoolExecutor(READERS) as pool:
            return pa.concat_tables([shape.empty_table(), *pool.map(taken, chosen)])

    def bits(self, table: str, columns: Sequence[str], files: Sequence[LakeFile]) -> Iterator[pa.Table]:
        """The rows of some files, a few at a time, as they stand: columns `a` and fields `a.b`, those left out that a file lacks.

        Raises:
            LakeError: a file cannot be read.
        """
        filesystem = self._log(table).place.filesystem()
        for file in files:
            with told_of_file(file.uri):
                yield from lake_files.read_groups(filesystem, file.path, [*columns])

    def place(self, table: str) -> TablePlace:
        """Where a table lies."""
        return self._log(table).place

    def _log(self, table: str) -> LakeLog:
        with self._lock:
            if table not in self._logs:
                known(table)
                self._logs[table] = LakeLog(lake_files.table_place(self.uri, self.options, table), table)
            return self._logs[table]

    def _written(self, table: str, rows: pa.Table, names: Sequence[str] | None = None) -> list[AddedFile]:
        """Writes rows into new files, one an hour. A table without a time has one partition, which `names` names."""
        fitted = conformed(rows, columns(table))
        fitted = part_writer.packed(fitted) if table == "spans" else fitted
        parts = dict(by_hour(fitted, known(table).time)) if rows.num_rows else {}
        if names is not None:
            parts = _of_named(table, parts, names)
        return [self._file(table, hour, part) for hour, part in parts.items()]

    def _file(self, table: str, hour: str, rows: pa.Table, *, is_tidy: bool = False) -> AddedFile:
        return added_file(self._log(table).place, table, hour, rows, lake_files.as_parquet(rows, known(table).time), is_tidy=is_tidy)

    def _listed(self, table: str, newest: DeltaTable) -> list[LakeFile]:
        """The files of a table as it is now; of a version once, since a round asks for each of its hours."""
        version = newest.version()
        held = self._listings.get(table, (-1, []))
        if held[0] != version:
            self._listings[table] = held = version, listed_files(newest, self._log(table).place.uri, known(table).time)
        return [*held[1]]


def _of_named(table: str, parts: dict[str, pa.Table], names: Sequence[str]) -> dict[str, pa.Table]:
    """The parts under these names; rows that have no time are of the first."""
    parts = {names[0] if part == TIMELESS and names else part: rows for part, rows in parts.items()}
    strays = sorted(set(parts) - set(names))
    if strays:
        msg = f"{table}: rows of {', '.join(strays)} came to replace {', '.join(names)}; a row must lie in one of these hours"
        raise ValueError(msg)
    return parts


def _chosen(table: str, names: Sequence[str] | None) -> pa.Schema:
    shape = columns(table)
    return shape if names is None else pa.schema([shape.field(name) for name in names])
