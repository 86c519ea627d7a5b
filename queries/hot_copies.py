"""Relations of the store in, Parquet files that another process can read out: copied when changed, kept while somebody reads them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from queries.parts import quoted
from queries.sealing import part_files
from queries.store import Store

_REUSE = 10  # a copy serves for this many times as long as it took to make, so that copying takes a tenth of the time at most


class CopyError(RuntimeError):
    """The rows of a relation cannot be copied; says which and why."""


# What analysts see; the store's other tables are its own affair. Those that a schema does not have yet are passed over.
RELATIONS = (
    "spans",
    "samples",
    "evaluations",
    "requests",
    "cells",
    "cell_histograms",
    "other_segments",
    "effects",
    "uncontrolled_effects",
    "verdicts",
    "current_verdicts",
    "flips",
    "deliveries",
    "alert_pushes",
    "policies",
    "settings_in_use",
    "revalidations",
    "after_checks",
    "quarantine",
    "suspicions",
    "corrections",
    "sampling",
    "ingest_ledger",
    "lever_settings",
    "links",
    "prices",
    "silences",
    "break_even",
    "calibrations",
    "deploys",
    "metrics",
    "watermarks",
    "retention_log",
    "lake_rounds",
    "lake_taken",
    "saved_questions",
)


@dataclass
class _Copy:
    version: int
    path: Path
    parts: list[Path]
    begun_s: float
    took_s: float = field(default=0.0)
    readers: int = field(default=0)
    stale: bool = field(default=False)


class HotCopies:
    """The hot rows of a store as zstd Parquet under `parts/hot/`. One per store: what an earlier one left there is deleted.

    A relation is copied by one caller at a time, while others go on with other relations. With `behind_s` above 0 a copy of older rows
    is given again while it is younger than that and than ten times what it took to make: small relations are always new.
    """

    def __init__(self, store: Store, behind_s: float = 0.0) -> None:
        self._store = store
        self._behind_s = behind_s
        self._folder = store.parts / "hot"
        self._folder.mkdir(exist_ok=True)
        self._lock = threading.Lock()  # of the readers' counts and of `_copies`; never held while rows are copied
        self._numbers = itertools.count(1)
        self._copies: dict[str, _Copy] = {}
        self.columns = _columns(store)
        self._sources = _sources(store, self.columns)
        self._copying = {relation: threading.Lock() for relation in self.columns}
        for path in self._folder.iterdir():
            path.unlink()

    @contextmanager
    def lease(self, relations: Iterable[str]) -> Iterator[dict[str, list[Path]]]:
        """The files of each relation, its sealed parts first and its hot rows last, as new as the commits `behind_s` before the call.

        Raises:
            CopyError: a relation cannot be copied, say because the disk is full.
        """
        held: dict[str, _Copy] = {}
        asked_s = time.monotonic()
        try:
            with self._store.reading():
                for relation in relations:
                    held[relation] = self._take(relation, asked_s)
                yield {relation: [*copy.parts, copy.path] for relation, copy in held.items()}
        finally:
            with self._lock:
                for copy in held.values():
                    copy.readers -= 1
                    _tidy(copy)

    def close(self) -> None:
        """Deletes the files that nobody reads, the others when their last reader is done."""
        with self._lock:
            for copy in self._copies.values():
                copy.stale = True
                _tidy(copy)
            self._copies.clear()

    def _take(self, relation: str, asked_s: float) -> _Copy:
        with self._copying[relation]:
            with self._lock:
                copy = self._copies.get(relation)
                if copy is not None and self._serves(copy, relation, asked_s):
                    copy.readers += 1
                    return copy
            fresh = self._made(relation)
            with self._lock:
                if copy is not None:
                    copy.stale = True
                    _tidy(copy)
                self._copies[relation] = fresh
                fresh.readers += 1
            return fresh

    def _serves(self, copy: _Copy, relation: str, asked_s: float) -> bool:
        """Whether it holds all that was committed when its reader asked, which may be before it was made, or is only as old as allowed."""
        allowed_s = min(self._behind_s, _REUSE * copy.took_s)
        return copy.begun_s >= asked_s - allowed_s or copy.version == self._store.version(_written_as(self._sources[relation]))

    def _made(self, relation: str) -> _Copy:
        source, begun_s = self._sources[relation], time.monotonic()
        version = self._store.version(_written_as(source))  # read before the rows: they may be newer than it says, never older
        path = self._folder / f"{relation}-{next(self._numbers)}.parquet"
        try:
            with self._store.snapshot() as seen:
                fresh = _Copy(version, path, part_files(self._store, seen, relation), begun_s)
                seen.execute(f'copy (select * from "{source}") to {quoted(path)} (format parquet, compression zstd)')
        except (duckdb.Error, OSError) as error:
            path.unlink(missing_ok=True)
            msg = f"{relation} cannot be copied for the statement: {str(error).splitlines()[0]}"
            raise CopyError(msg) from error
        fresh.took_s = time.monotonic() - begun_s
        return fresh


def _tidy(copy: _Copy) -> None:
    if copy.stale and copy.readers == 0:
        copy.path.unlink(missing_ok=True)


def _written_as(source: str) -> str:
    """The table whose commits change a relation: a view's own name stands in no statement that writes."""
    return {"ingest_ledger": "ingest_entries", "cells": "block_cells", "cell_histograms": "block_histograms"}.get(source, source)


def _sources(store: Store, relations: Iterable[str]) -> dict[str, str]:
    """Where the hot rows of each relation lie: in `<relation>_hot` where there is such a table, because the view adds sealed parts."""
    tables = {row["table_name"] for row in store.rows("select table_name from duckdb_tables()")}
    return {name: f"{name}_hot" if f"{name}_hot" in tables else name for name in relations}


def _columns(store: Store) -> dict[str, list[tuple[str, str]]]:
    """The columns of every relation an analyst sees, as (name, DuckDB type)."""
    rows = store.rows("select table_name, column_name, data_type from duckdb_columns() where not internal order by column_index")
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in RELATIONS}
    for row in rows:
        if row["table_name"] in found:
            found[row["table_name"]].append((row["column_name"], row["data_type"]))
    return {name: columns for name, columns in found.items() if columns}
