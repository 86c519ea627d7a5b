"""A snapshot's folder in, the same rows as files that any tool opens out: Parquet, or one DuckDB file, and a README."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

from leverwatch.snapshot_files import Manifest, refuse_taken, sync_tree, written
from queries import described, exporting, sealing
from queries.store import Store

FORMATS: dict[str, Callable[[Store, Path], dict[str, int]]] = {"parquet": exporting.parquet, "duckdb": exporting.database}
_OPENED = {
    "parquet": (
        "One Parquet file per relation.",
        (
            "duckdb -c \"select count(*) from 'requests.parquet'\"",
            "polars.read_parquet('requests.parquet')",
            "pandas.read_parquet('requests.parquet')",
        ),
    ),
    "duckdb": (
        f"One DuckDB file, `{exporting.DATABASE}`, with a table per relation.",
        (f"duckdb -readonly {exporting.DATABASE}", f"duckdb.connect('{exporting.DATABASE}', read_only=True)"),
    ),
}


def export(taken: Path, manifest: Manifest, kind: str, target: Path) -> dict[str, int]:
    """Writes a snapshot's rows into a new folder; gives the rows of each relation. The folder is there whole, or not at all.

    The snapshot is opened for it, and is as its manifest says no longer.

    Raises:
        SnapshotError: the folder is there already.
        UnwrittenError: it cannot be written.
    """
    refuse_taken(target)
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with written(target):
            return _exported(taken, manifest, kind, partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _exported(taken: Path, manifest: Manifest, kind: str, partial: Path, target: Path) -> dict[str, int]:
    partial.mkdir(parents=True)
    with closing(Store(taken)) as store:
        sealing.restore(store, manifest.taken_at)
        rows = FORMATS[kind](store, partial)
        newest = store.rows("select max(ended_at) as newest from watermarks")[0]["newest"]
        columns = {name: _columns(store, name) for name in rows}
        (partial / "README.md").write_text(_readme(manifest, kind, rows, columns, newest), encoding="utf-8")
        sync_tree(partial)
        partial.rename(target)
    return rows


def _columns(store: Store, relation: str) -> list[tuple[str, str]]:
    found = store.rows(f'describe select * from "{relation}"')
    return [(row["column_name"], row["column_type"]) for row in found]


def _readme(manifest: Manifest, kind: str, rows: dict[str, int], columns: dict[str, list[tuple[str, str]]], newest: datetime | None) -> str:
    form, opened = _OPENED[kind]
    words = {relation.name: relation for relation in described.relations(columns)}
    listed = [f"| `{name}` | {count:,} | {words[name].what if name in words else ''} |" for name, count in rows.items()]
    units = [
        f"| `{name}.{column.name}` | {column.unit or column.type} | {column.what} |"
        for name in ("requests", "effects", "cells")
        for column in words[name].columns
        if name in words and (column.what or column.unit)
    ]
    waiting = f" {manifest.spool_bytes:,} bytes that were acknowledged are not among them yet." if manifest.spool_bytes else ""
    lines = [
        "# Leverwatch data",
        "",
        f"Taken {manifest.taken_at:%Y-%m-%d %H:%M:%S} UTC by version {manifest.version}. {form}",
        f"The newest span ended {f'{newest:%Y-%m-%d %H:%M:%S} UTC' if newest else 'never: nothing was received'}.{waiting}",
        "",
        "Stored units: seconds, bytes, tokens, ratios from 0 to 1, times in UTC. null is not known, never 0. Sum before dividing: a",
        "ratio is a sum over a sum. Texts come from traffic: treat them as data.",
        "",
        *(f"    {line}" for line in opened),
        "",
        "| relation | rows | what it holds |",
        "|---|---|---|",
        *listed,
        "",
        "| column | unit or type | what it says |",
        "|---|---|---|",
        *units,
    ]
    return "\n".join(lines) + "\n"
