"""The name of a table of a lake in, its columns, the time that it is partitioned by and what tells its rows apart out.

Columns are those of the embedded store, so that rows go from one to the other as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa

from queries import migrating
from queries.store import schema_in_utc

HOUR = "hour"
HOUR_FORMAT = "%Y-%m-%dT%H"
TIMELESS = "all"  # the partition of rows that no time was given for


class UnknownLakeTableError(KeyError):
    """A lake has no table of that name."""


@dataclass(frozen=True, slots=True)
class LakeTable:
    """What a table of a lake is in the embedded store, the column whose hour it is partitioned by, and what a row is told apart by.

    Where `time` is None, whoever writes names the partitions. `key` is empty where two equal rows are two rows.
    """

    relation: str
    time: str | None
    key: tuple[str, ...] = ()


TABLES = {
    "spans": LakeTable("spans_hot", "started_at", ("trace_id", "span_id")),
    "samples": LakeTable("samples_hot", "observed_at", ("replica", "name", "labels", "observed_at")),
    "evaluations": LakeTable("evaluations", "evaluated_at", ("evaluation_id",)),
    "imported_requests": LakeTable("imported_requests", "started_at", ("request_id", "started_at")),
    "lever_settings": LakeTable("lever_settings", "since", ("replica", "lever", "arm", "setting", "since")),
    "ingest_entries": LakeTable("ingest_entries", "minute"),
    "requests": LakeTable("requests_hot", "started_at"),
    "quarantine": LakeTable("quarantine", "started_at"),
    "suspicions": LakeTable("suspicions", "suspected_at"),
    "sampling": LakeTable("sampling", "window_started_at"),
    "cells": LakeTable("lake_cells", "block_started_at"),
    "cell_histograms": LakeTable("lake_histograms", "block_started_at"),
    "effects": LakeTable("effects", "until", ("lever", "segment", "metric", "arm_a", "arm_b", "since", "until")),
    "rounds": LakeTable("lake_rounds", "ended_at"),
}
RAW = ("spans", "samples", "evaluations", "imported_requests", "lever_settings", "ingest_entries")


def known(name: str) -> LakeTable:
    """The table of that name. Any other of the embedded store is one without a time.

    Raises:
        UnknownLakeTableError: neither has it.
    """
    if name in TABLES:
        return TABLES[name]
    if name not in _embedded():
        msg = f"lake table {name!r} is unknown; known: {', '.join(sorted(TABLES))}, and the tables of the embedded store"
        raise UnknownLakeTableError(msg)
    return LakeTable(name, None)


def columns(name: str) -> pa.Schema:
    """The columns of a table, without its partition. Raises UnknownLakeTableError."""
    return _embedded()[known(name).relation]


@cache
def _embedded() -> dict[str, pa.Schema]:
    """The columns of every table and view of the embedded store under this version's schema."""
    connection = duckdb.connect()
    try:
        connection.execute("set TimeZone = 'UTC'")
        migrating.migrate(connection, Path("lake"))
        names = [str(name) for (name,) in connection.execute("select table_name from information_schema.tables").fetchall()]
        empty = {name: connection.sql(f'select * from "{name}" limit 0').to_arrow_table() for name in names}
    finally:
        connection.close()
    return {name: schema_in_utc(table.schema) for name, table in empty.items()}


def hour_name(moment: datetime) -> str:
    """The partition of the hour that a moment lies in."""
    return moment.astimezone(UTC).strftime(HOUR_FORMAT)


def hour_start(name: str) -> datetime | None:
    """When the hour of a partition begins; None where the partition is no hour."""
    try:
        return datetime.strptime(name, HOUR_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def hour_end(name: str) -> datetime | None:
    """When the hour of a partition ends; None where the partition is no hour."""
    start = hour_start(name)
    return None if start is None else start + timedelta(hours=1)


def hour_begin(name: str) -> datetime:
    """The same of a partition that is an hour for sure. Raises ValueError."""
    return datetime.strptime(name, HOUR_FORMAT).replace(tzinfo=UTC)


def part_name(part: datetime | str) -> str:
    """The partition that a caller means: the hour of a moment, or a name as it stands."""
    return part if isinstance(part, str) else hour_name(part)
