"""The embedded store: a data folder in, transactions and Polars frames out. The only module that opens `live.duckdb`."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import duckdb
import polars as pl
import pyarrow as pa

from queries import migrating
from queries.parts import SEALED, quoted

Params = Mapping[str, Any] | None


class StoreError(RuntimeError):
    """The data folder cannot be opened: held by another process, not writable, damaged, or without what its parts are listed in."""


class ArrowTable(Protocol):
    """Anything DuckDB reads as Arrow: a Polars frame, a pyarrow table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Transaction:
    """One write transaction. Obtained from `Store.write`; commits when its block ends, rolls back when it raises."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.words: set[str] = set()
        self.files: list[Path] = []  # that it lists; they go where it is undone

    def execute(self, sql: str, params: Params = None) -> int:
        """Runs one statement; gives the number of rows it changed (0 where DuckDB does not say)."""
        self.words.update(_words(sql))
        row = self._connection.execute(sql, dict(params) if params else None).fetchone()
        return int(row[0]) if row and isinstance(row[0], int) else 0

    def frame(self, sql: str, params: Params = None) -> pl.DataFrame:
        """The rows of a SELECT as a Polars frame, seen from inside the transaction."""
        return in_utc(pl.DataFrame(self._connection.sql(sql, params=dict(params) if params else None)))

    def tables(self, sql: str, params: Params = None, limit_rows: int = 25_000) -> Iterator[pa.Table]:
        """The rows of a SELECT as Arrow tables of at most so many rows, not all in memory; to be read to their end before the next call."""
        reader = self._connection.sql(sql, params=dict(params) if params else None).to_arrow_reader(limit_rows)
        schema = schema_in_utc(reader.schema)
        for batch in reader:
            yield pa.Table.from_batches([batch]).cast(schema)

    def shape(self, sql: str) -> pa.Schema:
        """The columns of a SELECT as `tables` gives them, also where it has no rows."""
        return schema_in_utc(self._connection.sql(f"select * from ({sql}) limit 0").to_arrow_table().schema)

    def insert(self, table: str, rows: ArrowTable) -> int:
        """Appends rows by column name; columns the table has and the rows lack become null. Gives their number."""
        return self.using(rows, f'insert into "{table}" by name select * from incoming')

    def using(self, rows: ArrowTable, sql: str, params: Params = None) -> int:
        """Runs one statement that reads `rows` under the name `incoming`."""
        self._connection.register("incoming", rows)
        try:
            return self.execute(sql, params)
        finally:
            with suppress(duckdb.Error):  # a failed statement has ended the transaction; its own error is the one to show
                self._connection.unregister("incoming")


class Store:
    """The store of one data folder. Thread-safe: reads run beside each other and beside the one writer."""

    def __init__(self, folder: Path, memory_limit: str = "2GB") -> None:
        self.folder = folder
        self.parts = folder / "parts"
        _make(self.parts)
        _refuse_orphans(folder / "live.duckdb", self.parts)
        self._writing = threading.RLock()
        self.part_numbers: dict[tuple[str, str], int] = {}  # the highest given out for a relation and a period: names come once
        self._root = _open_migrated(folder / "live.duckdb", self.parts, memory_limit)
        self._reading: dict[object, float] = {}
        self._commits = 0
        self._held: dict[tuple[str, tuple[tuple[str, Any], ...]], tuple[int, list[dict[str, Any]]]] = {}
        self._changed: dict[str, int] = dict.fromkeys(_relations(self._root), 0)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """The one write transaction at a time."""
        with self._writing:
            cursor = self._root.cursor()
            transaction = Transaction(cursor)
            try:
                cursor.execute("begin transaction")
                yield transaction
                transaction.files = []  # a commit that fails may stand all the same
                cursor.execute("commit")
                self._note(transaction.words)
            except BaseException:
                _roll_back(cursor)
                for file in transaction.files:
                    file.unlink(missing_ok=True)
                raise
            finally:
                cursor.close()

    def version(self, relation: str) -> int:
        """A number that grows with each commit whose statements name the relation. Raises KeyError for an unknown one."""
        return self._changed[relation]

    def _note(self, words: set[str]) -> None:
        self._commits += 1
        for relation in words & self._changed.keys():
            self._changed[relation] = self._commits

    def frame(self, sql: str, params: Params = None) -> pl.DataFrame:
        """The rows of one of our own SELECTs as a Polars frame. Never a stranger's text: that goes to `queries.sandbox`."""
        cursor = self._root.cursor()
        try:
            with self.reading():
                return in_utc(pl.DataFrame(cursor.sql(sql, params=dict(params) if params else None)))
        finally:
            cursor.close()

    def rows(self, sql: str, params: Params = None) -> list[dict[str, Any]]:
        """The same as a list of dicts."""
        return self.frame(sql, params).to_dicts()

    def unchanged_rows(self, relation: str, sql: str, params: Params = None) -> list[dict[str, Any]]:
        """The same of a SELECT over one relation alone, kept until a commit names it: to be asked often."""
        key, version = (sql, tuple((params or {}).items())), self.version(relation)
        held = self._held.get(key)
        if held is None or held[0] != version:
            held = self._held[key] = version, self.rows(sql, params)
        return held[1]

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """Reads that all see the same moment. Writes inside it are rolled back; COPY to `parts/` is none."""
        cursor = self._root.cursor()
        try:
            with self.reading():
                cursor.execute("begin transaction")
                yield Transaction(cursor)
        finally:
            _roll_back(cursor)
            cursor.close()

    @contextmanager
    def filling(self, file: Path, name: str) -> Iterator[Transaction]:
        """Reads that all see the same moment, beside another database file below `parts/`, attached as `name`.

        What is inserted there is kept when the block ends. No writer waits for it.
        """
        cursor = self._root.cursor()
        try:
            cursor.execute(f"attach {quoted(file)} as {name}")
            try:
                with self.reading():
                    cursor.execute("begin transaction")
                    yield Transaction(cursor)
                    cursor.execute("commit")
                cursor.execute(f"checkpoint {name}")
            finally:
                _roll_back(cursor)
                cursor.execute(f"detach {name}")
        finally:
            cursor.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While it is held, part files that were listed when it began stay where they are, listed or not."""
        mark = object()
        self._reading[mark] = time.monotonic()
        try:
            yield
        finally:
            del self._reading[mark]

    def read_since_s(self) -> float:
        """When the oldest reader that is still at it began, on the monotonic clock in seconds; now where nobody reads."""
        now_s = time.monotonic()
        return min([now_s, *self._reading.values()])

    def close(self) -> None:
        """Checkpoints and lets the file go."""
        with self._writing:
            with suppress(duckdb.FatalException):  # what a store that gave itself up has committed is in its log
                self._root.execute("checkpoint")
            self._root.close()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder}: cannot be made: {error.strerror}; the data folder has to be writable"
        raise StoreError(msg) from error


def _refuse_orphans(path: Path, parts: Path) -> None:
    """Raises where the database is missing that a log or part files beside it belong to: a new one would read none of their rows."""
    if path.exists():
        return
    log, held = Path(f"{path}.wal"), sum(1 for relation in SEALED for _ in (parts / relation).glob("*.parquet"))
    beside = [f"{held} part files in {parts}"] if held else []
    beside += [str(log)] if log.exists() and log.stat().st_size else []
    if beside:
        copies = ", ".join(copy.name for copy in sorted(path.parent.glob(f"{path.stem}.schema-*.duckdb")))
        older = f" or, as of its last migration, from {copies} beside it" if copies else ""
        found = " and ".join(beside)
        msg = f"{path} is missing, and nothing else reads {found}; put it back from a snapshot{older}, or move {found} away to begin anew"
        raise StoreError(msg)


def _open(path: Path, parts: Path, memory_limit: str) -> duckdb.DuckDBPyConnection:
    try:
        connection = duckdb.connect(str(path))
    except duckdb.Error as error:
        msg = f"{path}: cannot be opened; {_matter(str(error), path)}"
        raise StoreError(msg) from error
    connection.execute("set TimeZone = 'UTC'")
    connection.execute(f"set memory_limit = '{memory_limit}'")
    connection.execute(f"set allowed_directories = ['{parts}']")
    connection.execute("set enable_external_access = false")
    connection.execute("set parquet_metadata_cache = true")
    connection.execute("set lock_configuration = true")
    return connection


def _open_migrated(path: Path, parts: Path, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """The file opened under this version's schema; an older one is copied first, while it is closed: two handles would share its lock."""
    connection = _open(path, parts, memory_limit)
    try:
        if migrating.is_behind(connection):
            connection.close()
            migrating.back_up(path)
            connection = _open(path, parts, memory_limit)
        migrating.migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _matter(said: str, path: Path) -> str:
    """What DuckDB says about a file that it cannot open, in terms of what to do."""
    if "set lock" in said:
        return f"another process holds it: {said}"
    if any(reason in said for reason in ("Permission denied", "Read-only file system", "Operation not permitted")):
        return f"this user may not write there: {said}"
    if "replaying WAL" in said:
        return f"its log is damaged: put both back from a snapshot, or move {path}.wal away to go on without what it alone holds: {said}"
    if any(reason in said for reason in ("Corrupt", "not a valid DuckDB", "Could not read enough bytes")):
        return f"it is damaged: put it back from a snapshot, with its log and its parts: {said}"
    return said


def _relations(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute("select table_name from information_schema.tables").fetchall()
    return [str(name) for (name,) in rows]


def _words(sql: str) -> set[str]:
    return set(re.findall(r"[a-z_]\w*", sql.lower()))


def in_utc(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with its times in the zone `UTC`: DuckDB gives the session's zone as Etc/UTC, which Polars holds for another."""
    zoned = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime) and kind.time_zone not in (None, "UTC")]
    return frame.with_columns(pl.col(zoned).dt.convert_time_zone("UTC")) if zoned else frame


def schema_in_utc(schema: pa.Schema) -> pa.Schema:
    """The schema of what DuckDB gives with its times in the zone `UTC`."""
    zoned = [pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC") for field in schema]
    return pa.schema([f.with_type(pa.timestamp(f.type.unit, "UTC")) if odd else f for f, odd in zip(schema, zoned, strict=True)])


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    with suppress(duckdb.Error):  # a failed statement may have ended the transaction already; its own error is the one to show
        cursor.execute("rollback")
