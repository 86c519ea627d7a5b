"""The child process of the sandbox: a job as JSON on stdin, one JSON line and then an Arrow stream on stdout.

The line is `{"columns": [[name, type], ...]}` or `{"error": {"code", "message"}}`. Limits are set before the stranger's text is read by
DuckDB: address space, processor time, open files, no new processes, and files of at most 0 bytes, so that nothing can be written.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa

from queries import answer_size, statements
from queries.parts import quoted, relation_sql

BATCH_ROWS = 2048
NAMES_HINT = "SHOW TABLES lists the tables, DESCRIBE <table> their columns"
MEMORY_HINT = "aggregate further, read fewer columns, narrow started_at, or raise [sql] limit_bytes"
# Arrow has no counterpart for these, or one that other readers refuse: they leave as DuckDB's own text.
_AS_TEXT = frozenset({"interval", "time with time zone", "bit", "union", "bignum", "uhugeint", "variant", "geometry", "time_ns"})


class TooLargeError(ValueError):
    """The answer is larger than the output limit."""


FAULTS = (duckdb.Error, MemoryError, RecursionError, ValueError, OSError, pa.ArrowException)  # OSError: a stream of rows that breaks off
OUT_OF_MEMORY = "Out of Memory Error"


def main() -> None:
    """Reads the job, answers it, ends."""
    try:
        job = json.load(sys.stdin.buffer)
        _limit(job)
        columns, table = _answer(_open(job), job)
    except FAULTS as error:
        _send(sys.stdout.buffer, {"error": _told(error)})
    else:
        _send(sys.stdout.buffer, {"columns": columns}, table)


def _limit(job: dict[str, Any]) -> None:
    """The parent kills at the wall limit; the timer ends a child whose parent is gone."""
    signal.setitimer(signal.ITIMER_REAL, job["wall_s"] + 5)
    cpu_s = int(job["wall_s"] * job["threads"]) + 2
    for what, most in (
        (resource.RLIMIT_AS, job["memory_bytes"]),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def _answer(connection: duckdb.DuckDBPyConnection, job: dict[str, Any]) -> tuple[list[tuple[str, str]], pa.Table]:
    statements.check(connection, job["sql"])
    connection.execute("begin transaction read only")
    relation = connection.sql(job["sql"], params=job["params"] or None)
    columns = [(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)]
    return columns, _read(_plain(relation), job["limit_rows"] + 1, job["output_bytes"], job["output_values"])


def _open(job: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config=_config(job))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))  # the threads are there; none, and no process, may follow
    for name, files in job["files"].items():
        hot = f"read_parquet([{quoted(files[-1])}])"
        connection.execute(f'create view "{name}" as {relation_sql(name, hot, files[:-1])}')
    for name, columns in job["unnamed"].items():
        connection.execute(_shell(name, columns))
    allowed = ", ".join(quoted(file) for files in job["files"].values() for file in files)
    connection.execute("set TimeZone = 'UTC'; set temp_directory = ''; set python_enable_replacements = false")
    connection.execute("set autoinstall_known_extensions = false; set autoload_known_extensions = false")
    connection.execute(f"set allowed_paths = [{allowed}]; set enable_external_access = false; set lock_configuration = true")
    return connection


def _config(job: dict[str, Any]) -> dict[str, Any]:
    """Half of the memory is DuckDB's; no secrets are kept, whose folder an error would name."""
    return {"threads": job["threads"], "memory_limit": f"{job['memory_bytes'] // 2}B", "allow_persistent_secrets": False}


def _shell(name: str, columns: list[list[str]]) -> str:
    """A view that DESCRIBE and SHOW can see; reading it by a name that stands nowhere in the text is an error, never an empty answer."""
    listed = ", ".join(f'cast(null as {kind}) as "{column}"' for column, kind in columns)
    return f"create view \"{name}\" as select {listed} where error('{name} is not loaded: write its name in the statement')"


def _plain(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The relation with the columns that Arrow cannot carry cast to text."""
    odd = [_is_odd(kind) for kind in relation.types]
    if not any(odd):
        return relation
    names = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in relation.columns]
    listed = [f"cast(#{n} as varchar) as {name}" if odd[n - 1] else f"#{n} as {name}" for n, name in enumerate(names, 1)]
    return relation.project(", ".join(listed))


def _is_odd(kind: Any) -> bool:
    if kind.id in _AS_TEXT:
        return True
    if kind.id not in ("list", "array", "struct", "map", "tuple"):
        return False
    inner = [child for _, child in kind.children if not isinstance(child, int)]
    return not inner or any(_is_odd(child) for child in inner)  # Parquet has no struct without fields


def _read(relation: duckdb.DuckDBPyRelation, rows: int, most_bytes: int, most_values: int) -> pa.Table:
    """The first rows; stops the query when it has them, or when they are too many values or bytes, as Arrow or as JSON."""
    reader = relation.to_arrow_reader(BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    values = arrow_bytes = json_bytes = 0
    for batch in reader:
        batches.append(batch.slice(0, rows))
        size = answer_size.size(batches[-1])
        values, json_bytes = values + size.values, json_bytes + size.json_bytes
        arrow_bytes += batches[-1].nbytes
        if values > most_values:
            msg = f"the answer has more than {most_values:,} values, in {len(reader.schema)} columns"
            raise TooLargeError(msg)
        if max(arrow_bytes, json_bytes) > most_bytes:
            msg = f"the answer is larger than {most_bytes:,} bytes"
            raise TooLargeError(msg)
        rows -= len(batches[-1])
        if rows == 0:
            break
    return pa.Table.from_batches(batches, reader.schema)


def _told(error: Exception) -> dict[str, str]:
    message = str(error).strip() or type(error).__name__
    if isinstance(error, TooLargeError):
        return {"code": "too_large", "message": message, "hint": "ask for fewer columns, a lower limit, or aggregate"}
    if isinstance(error, (duckdb.OutOfMemoryException, MemoryError, pa.ArrowMemoryError)) or OUT_OF_MEMORY in message:
        return {"code": "memory_limit", "message": message.splitlines()[0], "hint": MEMORY_HINT}
    if isinstance(error, statements.StatementError):
        return {"code": "refused", "message": message, "hint": f"taken: {statements.TAKEN}"}
    if isinstance(error, duckdb.PermissionException):
        return {"code": "refused", "message": message.splitlines()[0], "hint": "only the store's own tables can be read"}
    if isinstance(error, RecursionError):
        return {"code": "invalid", "message": "the statement or a parameter is nested too deeply", "hint": "split it by WITH"}
    names = isinstance(error, (duckdb.CatalogException, duckdb.BinderException))
    return {"code": "invalid", "message": message, "hint": NAMES_HINT if names else ""}


def _send(out: BinaryIO, line: dict[str, Any], table: pa.Table | None = None) -> None:
    out.write(json.dumps(line).encode() + b"\n")
    if table is not None:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
    out.flush()


if __name__ == "__main__":
    main()
