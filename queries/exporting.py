"""A store in, its relations out as plain files that other programs open: a Parquet file each, or one DuckDB file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from queries.hot_copies import RELATIONS
from queries.store import Store

ROWS_AT_ONCE = 25_000
DATABASE = "leverwatch.duckdb"
Take = Callable[[str, pa.Schema, Iterator[pa.Table]], int]


def parquet(store: Store, folder: Path) -> dict[str, int]:
    """Writes `<relation>.parquet` of each relation into a folder, all of one moment; gives the rows of each."""

    def take(relation: str, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
        rows = 0
        with pq.ParquetWriter(folder / f"{relation}.parquet", schema, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)
                rows += table.num_rows
        return rows

    return _each(store, take)


def database(store: Store, folder: Path) -> dict[str, int]:
    """Writes one DuckDB file with a table per relation into a folder, all of one moment; gives the rows of each."""
    with duckdb.connect(folder / DATABASE) as connection:
        connection.execute("set timezone = 'UTC'")

        def take(relation: str, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
            rows = 0
            connection.register("incoming", schema.empty_table())
            connection.execute(f'create table "{relation}" as from incoming')
            for table in tables:
                connection.register("incoming", table)
                connection.execute(f'insert into "{relation}" from incoming')
                rows += table.num_rows
            connection.unregister("incoming")
            return rows

        return _each(store, take)


def _each(store: Store, take: Take) -> dict[str, int]:
    with store.snapshot() as seen:
        there = set(seen.frame("select table_name from information_schema.tables")["table_name"])
        found = {}
        for relation in (name for name in RELATIONS if name in there):
            asked = f'select * from "{relation}"'
            found[relation] = take(relation, seen.shape(asked), seen.tables(asked, None, ROWS_AT_ONCE))
        return found
