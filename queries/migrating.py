"""An opened store of any older schema in, one of this version's schema with the same rows out; before that, a copy of the file."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import duckdb

from queries import files
from queries.parts import SEALED


class SchemaError(RuntimeError):
    """The schema cannot be brought to this version; says the folder, the step, the reason, and where the copy lies."""


def is_behind(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the store holds rows under an older schema. A new and empty one holds none."""
    return 0 < _number(connection) < _newest()


def back_up(path: Path) -> Path:
    """Copies a closed store beside itself before it is migrated, under the number of its schema; an older copy goes then.

    Raises:
        SchemaError: the copy cannot be made, say because the disk is full; the store is as it was.
    """
    with duckdb.connect(str(path)) as connection:
        number = _number(connection)
        connection.execute("checkpoint")
    kept = _copy_name(path, number)
    fresh = kept.with_suffix(".part")
    try:
        shutil.copyfile(path, fresh)
        _sync(fresh)
        fresh.replace(kept)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        msg = f"{path}: schema {number} is not migrated, because no copy of it can be made first: {error.strerror}"
        raise SchemaError(msg) from error
    for older in set(path.parent.glob(f"{path.stem}.schema-*.duckdb")) - {kept}:
        older.unlink()
    return kept


def migrate(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Brings the schema to this version, one numbered file a transaction.

    Raises:
        SchemaError: the schema is newer than this version knows, or a step fails; the steps before it stand, its own changes do not.
    """
    connection.execute("create table if not exists schema_version (number bigint not null)")
    done = _number(connection)
    if done > _newest():
        msg = f"{path.parent}: schema {done} is newer than this version knows ({_newest()}); use a newer Leverwatch"
        raise SchemaError(msg)
    for number, text in files.schema():
        if number > done:
            _step(connection, path, done, number, text)


def _step(connection: duckdb.DuckDBPyConnection, path: Path, began_at: int, number: int, text: str) -> None:
    try:
        connection.execute("begin transaction")
        if began_at:
            _unbind_parts(connection)
        connection.execute(text)
        connection.execute("insert into schema_version values ($number)", {"number": number})
        connection.execute("commit")
    except duckdb.Error as error:
        with suppress(duckdb.Error):
            connection.execute("rollback")
        kept = _copy_name(path, began_at)
        beside = f"; a copy from before the migration is {kept}" if kept.exists() else ""
        msg = f"{path}: step {number} of the schema fails, and nothing of it stands: {str(error).splitlines()[0]}{beside}"
        raise SchemaError(msg) from error


def _unbind_parts(connection: duckdb.DuckDBPyConnection) -> None:
    """Views name part files by their whole path, which a moved folder no longer has; `sealing.restore` names them anew."""
    held = {name for (name,) in connection.execute("select view_name from duckdb_views() where not internal").fetchall()}
    for relation in SEALED:
        if relation in held:
            connection.execute(f"create or replace view {relation} as select * from {relation}_hot")


def _number(connection: duckdb.DuckDBPyConnection) -> int:
    if not connection.execute("select 1 from duckdb_tables() where table_name = 'schema_version'").fetchone():
        return 0
    row = connection.execute("select coalesce(max(number), 0) from schema_version").fetchone()
    return int(row[0]) if row else 0


def _newest() -> int:
    return max(number for number, _ in files.schema())


def _copy_name(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.schema-{number}.duckdb")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
