"""Relations of the store in, Parquet files that another process can read out: copied when changed, kept while somebody reads them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from queries.sealing import part_files
from queries.store import Store

# What analysts see; the store's other tables are its own affair. Those that a schema does not have yet are passed over.
RELATIONS = (
    "spans",
    "samples",
    "evaluations",
    "requests",
    "cells",
    "effects",
    "verdicts",
    "current_verdicts",
    "flips",
    "deliveries",
    "policies",
    "quarantine",
    "ingest_ledger",
    "lever_settings",
    "silences",
    "break_even",
    "metrics",
    "watermarks",
)


@dataclass
class _Copy:
    version: int
    path: Path
    parts: list[Path]
    readers: int = field(default=0)
    stale: bool = field(default=False)


class HotCopies:
    """The hot rows of a store as zstd Parquet under `parts/hot/`. One per store: what an earlier one left there is deleted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = store.parts / "hot"
        self._folder.mkdir(exist_ok=True)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._copies: dict[str, _Copy] = {}
        self.columns = _columns(store)
        self._sources = _sources(store, self.columns)
        for path in self._folder.iterdir():
            path.unlink()

    @contextmanager
    def lease(self, relations: Iterable[str]) -> Iterator[dict[str, list[Path]]]:
        """The files of each relation, its sealed parts first and its hot rows last, as new as the commits before the call."""
        held: dict[str, _Copy] = {}
        try:
            with self._lock:
                for relation in relations:
                    held[relation] = self._take(relation)
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

    def _take(self, relation: str) -> _Copy:
        source = self._sources[relation]
        version = self._store.version(source)  # read before the rows: they may be newer than it says, never older
        copy = self._copies.get(relation)
        if copy is None or copy.version != version:
            path = self._folder / f"{relation}-{next(self._numbers)}.parquet"
            with self._store.snapshot() as seen:
                fresh = _Copy(version, path, part_files(self._store, seen, relation))
                seen.execute(f"copy (select * from \"{source}\") to '{path}' (format parquet, compression zstd)")
            self._copies[relation] = fresh
            if copy is not None:
                copy.stale = True
                _tidy(copy)
            copy = fresh
        copy.readers += 1
        return copy


def _tidy(copy: _Copy) -> None:
    if copy.stale and copy.readers == 0:
        copy.path.unlink(missing_ok=True)


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
