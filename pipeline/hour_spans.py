"""A lake and an hour in, the spans out that its requests, and those that ran beside them, are made of: whole traces, each span once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa

from queries import lake_taking
from queries.lake import Lake

HOUR = timedelta(hours=1)
FAR = HOUR  # how far from each other spans of one request may lie, as in `jobs.assemble_next`
AROUND = timedelta(minutes=15)  # what ran before the hour, and behind it, and matters to requests of it
IDS = ("trace_id", "span_id", "started_at", "ended_at", "received_at")
COLUMNS = (
    *IDS, "parent_span_id", "role", "dialect", "status", "duration_s", "replica", "sender", "signals", "levers", "arms",
    "joins_by_request_id",
)  # fmt: skip
_NO_REQUEST = pl.col("role").is_null() | (pl.col("role") == "housekeeping")


def spans(lake: Lake, hour: datetime) -> pl.DataFrame:
    """One row per span as `assemble` reads them, signals as columns of their own; none where no span began within the hour."""
    seen = _frame(lake.read("spans", IDS[:4], hour - FAR, hour + HOUR + FAR))
    chosen = _traces(seen, hour, seen.filter(_inside(pl.col("started_at"), hour))["ended_at"].max())
    if chosen.is_empty():
        return _as_assembled(lake.read("spans", COLUMNS, files=[]))
    since, until = seen.filter(_of(chosen)).select(since=pl.col("started_at").min(), until=pl.col("started_at").max()).row(0)
    return _once(lake.read("spans", COLUMNS, since, until + timedelta(microseconds=1)), chosen)


def of_rows(rows: pa.Table, hour: datetime, until: datetime | None) -> pl.DataFrame:
    """The same of rows (COLUMNS) of some traces. `until` says when the last span of the whole hour ends; None: there is none."""
    return _once(rows, _traces(_frame(rows.select(IDS[:4])), hour, until))


def imported(lake: Lake, hour: datetime) -> pl.DataFrame:
    """The requests that were loaded as such, of the hour and around it, each once."""
    return loaded(lake.read("imported_requests", None, hour - AROUND, hour + HOUR + AROUND))


def loaded(rows: pa.Table) -> pl.DataFrame:
    """The same of rows of `imported_requests`."""
    return _frame(lake_taking.once("imported_requests", rows)).drop("sender", "received_at", "is_taken").sort("started_at")


def _once(rows: pa.Table, traces: pl.Series) -> pl.DataFrame:
    """The spans of these traces, each once."""
    of_them = pa.compute.is_in(rows["trace_id"], traces.to_arrow().cast(pa.string()))
    return _as_assembled(lake_taking.once("spans", rows if pa.compute.all(of_them).as_py() else rows.filter(of_them)))


def _traces(seen: pl.DataFrame, hour: datetime, until: Any) -> pl.Series:
    """The traces that have a span in the hour, or one that was under way shortly before it or while its spans were, which is `until`."""
    began, ended = pl.col("started_at"), pl.col("ended_at")
    if until is None:
        return seen["trace_id"].clear()
    tail = min(until, hour + HOUR + AROUND)
    near = ((began >= hour - AROUND) | (ended >= hour - AROUND)) & ((began < hour + HOUR) | (began <= tail))
    return seen.filter(near)["trace_id"].unique()


def _as_assembled(rows: pa.Table) -> pl.DataFrame:
    """Spans that may belong to a request, with their signals as columns. One that nobody knows may stand between two that are known."""
    signals = rows["signals"].combine_chunks() if rows.num_rows else pa.array([], rows.schema.field("signals").type)
    columns = {name: rows[name] for name in COLUMNS if name != "signals"}
    columns |= {field.name: signals.field(place) for place, field in enumerate(signals.type)}
    spans = _frame(pa.table(columns))
    own = pl.when("joins_by_request_id").then("request_id").otherwise("join_key").alias("join_key")
    asked = spans.filter(~_NO_REQUEST)["trace_id"].unique()
    kept = ~_NO_REQUEST | (pl.col("parent_span_id").is_not_null() & pl.col("trace_id").is_in(asked.implode()))
    return spans.with_columns(own).filter(kept).drop("joins_by_request_id", "received_at")


def _inside(moment: pl.Expr, hour: datetime) -> pl.Expr:
    return (moment >= hour) & (moment < hour + HOUR)


def _of(traces: pl.Series) -> pl.Expr:
    return pl.col("trace_id").is_in(traces.implode())


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame: pl.DataFrame = pl.DataFrame(rows)
    return frame
