"""A stranger's SQL in, its rows or an error out; run in a child process that can neither write, nor hang, nor take the owner's memory.

The owner of the store copies what the text names to Parquet (`queries.hot_copies`); the child (`queries.sandbox_child`) reads only these.
"""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from queries import child_output, children
from queries.hot_copies import CopyError, HotCopies
from queries.results import SqlResult
from queries.runs import Run, RunIdError, Runs
from queries.store import Store

STOPPED_EVERY_S = 0.1  # how often one that waits for its place looks whether it was stopped


class SqlError(ValueError):
    """A statement without an answer. `code`: refused, invalid, time_limit, memory_limit, too_large, busy, cancelled or crashed."""

    def __init__(self, message: str, code: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class SqlLimits:
    """What one statement may take. `rows` and `wall_s` are the limits where the caller names none, `most_rows` and `most_wall_s` the
    highest that it may name.

    `output_values` bounds rows times columns, nested values included; `output_bytes` the answer as Arrow and as JSON. `behind_s` is how
    old the rows of a relation may be that is costly to copy (see `HotCopies`); at 0 a statement sees all that was committed before it.
    """

    rows: int = 10_000
    most_rows: int = 1_000_000
    wall_s: float = 10.0
    most_wall_s: float = 60.0
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
        self.runs = Runs()
        self.outcomes: Counter[str] = Counter()  # of statements: answered, or the code of their `SqlError`
        self._counting = threading.Lock()

    @property
    def columns(self) -> Mapping[str, list[tuple[str, str]]]:
        """The columns of every relation that can be read, as (name, DuckDB type)."""
        return self._copies.columns

    def run(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        limit_rows: int | None = None,
        *,
        limit_s: float | None = None,
        run_id: str | None = None,
    ) -> SqlResult:
        """The rows of one reading statement, the first `limit_rows` of them. Under its `run_id` it can be stopped. Raises SqlError."""
        started_s = time.monotonic()
        try:
            limit_rows, wall_s = self._checked(sql, limit_rows, limit_s)
            with self.runs.on_their_way(run_id, limit_rows, wall_s) as run:
                columns, table = self._answer(sql, params, run)
        except RunIdError as error:
            self._count("invalid")
            raise SqlError(str(error), "invalid") from error
        except SqlError as error:
            self._count(error.code)
            raise
        self._count("answered")
        truncated = table.num_rows > limit_rows
        return SqlResult(columns, table.slice(0, limit_rows), truncated, time.monotonic() - started_s)

    def close(self) -> None:
        """Deletes the Parquet copies."""
        self._copies.close()

    def _count(self, outcome: str) -> None:
        with self._counting:
            self.outcomes[outcome] += 1

    def _checked(self, sql: str, limit_rows: int | None, limit_s: float | None) -> tuple[int, float]:
        limits = self.limits
        if len(sql) > limits.statement_characters:
            msg = f"the statement has {len(sql):,} characters; at most {limits.statement_characters:,} are taken"
            raise SqlError(msg, "invalid")
        if limit_rows is not None and not 1 <= limit_rows <= limits.most_rows:
            msg = f"limit {limit_rows:,}: 1 to {limits.most_rows:,} rows are taken"
            raise SqlError(msg, "invalid")
        most_s = max(limits.wall_s, limits.most_wall_s)
        if limit_s is not None and not 0 < limit_s <= most_s:
            msg = f"limit_s {limit_s:g}: above 0 and up to {most_s:g} s are taken"
            raise SqlError(msg, "invalid")
        return limit_rows or limits.rows, limit_s or limits.wall_s

    def _answer(self, sql: str, params: Mapping[str, Any] | None, run: Run) -> tuple[list[tuple[str, str]], pa.Table]:
        named = _named(sql, self._copies.columns)
        try:
            # In this order: who waits for a copy keeps nobody from a place.
            with self._copies.lease(named) as files, self._place(run):
                head, body = self._run_child(self._job(sql, params, run, files), run)
        except CopyError as error:
            raise SqlError(str(error), "crashed", "look at the space left for the data folder") from error
        if "error" in head:
            raise SqlError(**head["error"])
        return [(name, kind) for name, kind in head["columns"]], pa.ipc.open_stream(body).read_all()

    @contextmanager
    def _place(self, run: Run) -> Iterator[None]:
        until_s = time.monotonic() + self.limits.wait_s
        while not self._places.acquire(timeout=max(0.0, min(STOPPED_EVERY_S, until_s - time.monotonic()))):
            if run.is_stopped:
                raise _cancelled(run)
            if time.monotonic() >= until_s:
                msg = f"{self.limits.at_once} statements are running; none ended within {self.limits.wait_s:g} s"
                raise SqlError(msg, "busy", "try again in a moment")
        try:
            yield
        finally:
            self._places.release()

    def _job(self, sql: str, params: Mapping[str, Any] | None, run: Run, files: Mapping[str, list[Path]]) -> bytes:
        limits = self.limits
        job = {
            "sql": sql,
            "params": dict(params or {}),
            "limit_rows": run.limit_rows,
            "files": {name: [str(path) for path in paths] for name, paths in files.items()},
            "unnamed": {name: columns for name, columns in self._copies.columns.items() if name not in files},
            "wall_s": run.wall_s,
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

    def _run_child(self, job: bytes, run: Run) -> tuple[dict[str, Any], memoryview]:
        deadline_s = time.monotonic() + run.wall_s
        with children.started("-m", "queries.sandbox_child") as child:
            run.holds(child)
            try:
                output = child_output.talk(child, job, deadline_s, self.limits.output_bytes * 2)
            except child_output.TooLateError as error:
                raise self._too_slow(run) from error
            finally:
                child.kill()
        if run.is_stopped:
            raise _cancelled(run)
        if child.returncode != 0:
            raise self._ended(run, child.returncode, output.errors)
        line, _, body = output.answer.partition(b"\n")
        return json.loads(line), memoryview(body)

    def _ended(self, run: Run, status: int, errors: str) -> SqlError:
        """The error of a child that ended without an answer."""
        if -status in (signal.SIGXCPU, signal.SIGALRM):
            return self._too_slow(run)
        how = children.how_it_ended(status, errors)
        return SqlError(f"the process of this statement ended with {how}", "crashed", "simplify it; the store itself is not affected")

    def _too_slow(self, run: Run) -> SqlError:
        most_s = max(self.limits.wall_s, self.limits.most_wall_s)
        more = f", or ask for more time: limit_s, up to {most_s:g}" if run.wall_s < most_s else ""
        msg = f"the statement ran longer than {run.wall_s:g} s and was stopped"
        return SqlError(msg, "time_limit", f"narrow started_at, aggregate, or read fewer columns{more}")


def _cancelled(run: Run) -> SqlError:
    how = "before it began" if run.is_waiting else f"after {run.elapsed_s:.1f} s"
    return SqlError(
        f"the statement was cancelled {how}", "cancelled", "nothing is wrong with it: somebody stopped it, or its caller hung up"
    )


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
