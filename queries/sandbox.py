"""A stranger's SQL in, its rows or an error out; run in a child process that can neither write, nor hang, nor take the owner's memory.

The owner of the store copies what the text names to Parquet (`queries.hot_copies`); the child (`queries.sandbox_child`) reads only these.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from queries import child_output
from queries.hot_copies import CopyError, HotCopies
from queries.results import SqlResult
from queries.store import Store


class SqlError(ValueError):
    """A statement without an answer. `code`: refused, invalid, time_limit, memory_limit, too_large, busy or crashed."""

    def __init__(self, message: str, code: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class SqlLimits:
    """What one statement may take. `rows` is the limit where the caller names none, `most_rows` the highest that it may name.

    `output_values` bounds rows times columns, nested values included; `output_bytes` the answer as Arrow and as JSON. `behind_s` is how
    old the rows of a relation may be that is costly to copy (see `HotCopies`); at 0 a statement sees all that was committed before it.
    """

    rows: int = 10_000
    most_rows: int = 1_000_000
    wall_s: float = 10.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 128 << 20
    output_values: int = 2_000_000
    statement_characters: int = 200_000  # a report of every metric has some 115,000
    threads: int = 2
    at_once: int = 2
    wait_s: float = 10.0
    behind_s: float = 0.0


class Sandbox:
    """Runs ad-hoc SQL over one store. Thread-safe; `close` deletes its files. One per store."""

    def __init__(self, store: Store, limits: SqlLimits | None = None) -> None:
        self.limits = limits or SqlLimits()
        self._copies = HotCopies(store, self.limits.behind_s)
        self._places = threading.BoundedSemaphore(self.limits.at_once)

    def run(self, sql: str, params: Mapping[str, Any] | None = None, limit_rows: int | None = None) -> SqlResult:
        """The rows of one reading statement, the first `limit_rows` of them. Raises SqlError."""
        started_s = time.monotonic()
        limit_rows = self._checked(sql, limit_rows)
        columns, table = self._answer(sql, params, limit_rows)
        truncated = table.num_rows > limit_rows
        return SqlResult(columns, table.slice(0, limit_rows), truncated, time.monotonic() - started_s)

    def close(self) -> None:
        """Deletes the Parquet copies."""
        self._copies.close()

    def _checked(self, sql: str, limit_rows: int | None) -> int:
        most = self.limits.statement_characters
        if len(sql) > most:
            msg = f"the statement has {len(sql)} characters; at most {most} are taken"
            raise SqlError(msg, "invalid")
        if limit_rows is None:
            return self.limits.rows
        if not 1 <= limit_rows <= self.limits.most_rows:
            msg = f"limit is {limit_rows}; taken: 1 to {self.limits.most_rows}"
            raise SqlError(msg, "invalid")
        return limit_rows

    def _answer(self, sql: str, params: Mapping[str, Any] | None, limit_rows: int) -> tuple[list[tuple[str, str]], pa.Table]:
        named = _named(sql, self._copies.columns)
        try:
            with self._copies.lease(named) as files, self._place():  # in this order: who waits for a copy keeps nobody from a place
                head, body = self._run_child(self._job(sql, params, limit_rows, files))
        except CopyError as error:
            raise SqlError(str(error), "crashed", "look at the space left for the data folder") from error
        if "error" in head:
            raise SqlError(**head["error"])
        return [(name, kind) for name, kind in head["columns"]], pa.ipc.open_stream(body).read_all()

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._places.acquire(timeout=self.limits.wait_s):
            msg = f"{self.limits.at_once} statements are running; none ended within {self.limits.wait_s:g} s"
            raise SqlError(msg, "busy", "try again in a moment")
        try:
            yield
        finally:
            self._places.release()

    def _job(self, sql: str, params: Mapping[str, Any] | None, limit_rows: int, files: Mapping[str, list[Path]]) -> bytes:
        limits = self.limits
        job = {
            "sql": sql,
            "params": dict(params or {}),
            "limit_rows": limit_rows,
            "files": {name: [str(path) for path in paths] for name, paths in files.items()},
            "unnamed": {name: columns for name, columns in self._copies.columns.items() if name not in files},
            "wall_s": limits.wall_s,
            "memory_bytes": limits.memory_bytes,
            "output_bytes": limits.output_bytes,
            "output_values": limits.output_values,
            "threads": limits.threads,
        }
        try:
            return json.dumps(job, default=_json_able).encode()
        except RecursionError as error:
            msg = "a parameter is nested too deeply"
            raise SqlError(msg, "invalid") from error

    def _run_child(self, job: bytes) -> tuple[dict[str, Any], memoryview]:
        deadline_s = time.monotonic() + self.limits.wall_s
        with subprocess.Popen(
            [sys.executable, "-I", "-B", "-m", "queries.sandbox_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=_ENVIRONMENT,
            close_fds=True,
            start_new_session=True,
        ) as child:
            try:
                output = child_output.talk(child, job, deadline_s, self.limits.output_bytes * 2)
            except child_output.TooLateError as error:
                raise _too_slow(self.limits) from error
            finally:
                child.kill()
        if child.returncode != 0:
            raise self._ended(child.returncode, output.errors)
        line, _, body = output.answer.partition(b"\n")
        return json.loads(line), memoryview(body)

    def _ended(self, status: int, errors: str) -> SqlError:
        """The error of a child that ended without an answer."""
        if -status in (signal.SIGXCPU, signal.SIGALRM):
            return _too_slow(self.limits)
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        said = f": {errors.strip().splitlines()[-1]}" if errors.strip() else ""
        return SqlError(f"the process of this statement ended with {how}{said}", "crashed", "simplify it; the store itself is not affected")


def _too_slow(limits: SqlLimits) -> SqlError:
    msg = f"the statement ran longer than {limits.wall_s:g} s and was stopped"
    return SqlError(msg, "time_limit", "narrow started_at, aggregate, or read fewer columns")


def _named(sql: str, relations: Mapping[str, object]) -> list[str]:
    """The relations whose name stands in the text as a word."""
    words = set(re.findall(r"\w+", sql.lower()))
    return [relation for relation in relations if relation in words]


def _json_able(value: object) -> object:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    msg = f"a parameter is of type {type(value).__name__}; taken: null, boolean, number, text, date, list, object"
    raise SqlError(msg, "invalid")


# One malloc arena and the system allocator keep the address space small: 370 MB before the statement, of the 1 GiB that it may have.
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
    **{name: os.environ[name] for name in ("LD_LIBRARY_PATH", "TZDIR") if name in os.environ},
}
