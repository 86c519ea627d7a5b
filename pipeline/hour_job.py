"""A lake and an hour in; what became of that hour in the place of what the lake had of it, out. Done again, it gives the same."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

import polars as pl
import pyarrow as pa

from pipeline import hour_spans, hours, lake_cells
from pipeline.hours import HOUR, Made, Raw, Rules
from pipeline.surroundings import FIRST
from queries import lake_taking
from queries.lake import Lake
from queries.lake_rows import conformed
from queries.lake_tables import columns

BEFORE = FIRST + hours.BLOCK  # how far before the hour samples matter: to the block before it as well
MADE = ("requests", "quarantine", "suspicions", "sampling", "cell_histograms", "cells")


@dataclass(frozen=True, slots=True)
class Told:
    """What a task did: the hour, its requests and how many of them are settled, and the processor seconds that it took."""

    hour: datetime
    requests: int
    settled: int
    cpu_s: float


def work(lake: Lake, hour: datetime, rules: Rules, cutoff: datetime) -> Told:
    """Makes an hour's requests, quarantine and cells of the lake's raw tables. Each table is replaced in one commit, its cells last.

    Raises:
        LakeError: the lake cannot be read or written.
    """
    began_s = time.process_time()
    made = hours.made(hour, raw(lake, hour, rules), rules, cutoff)
    for table, rows in tables(made).items():
        if rows.num_rows or lake.files(table, hour, hour + HOUR):
            lake.replace(table, rows, [hour])
    return Told(hour, made.requests.num_rows, settled(made), time.process_time() - began_s)


def tables(made: Made) -> dict[str, pa.Table]:
    """The rows of each table of MADE, in its order."""
    cells = lake_cells.long(made.cells)
    frames = {"quarantine": made.quarantine, "suspicions": made.suspicions, "sampling": made.sampling, **cells}
    return {table: made.requests if table == "requests" else as_rows(table, frames[table]) for table in MADE}


def raw(lake: Lake, hour: datetime, rules: Rules) -> Raw:
    """What the lake has around an hour, each row once. Its spans, which take the most memory, are let go once requests are made of them."""
    spans = hour_spans.spans(lake, hour)
    spoken = spans.select(hours.SPOKEN).filter(pl.col("role") == "engine")
    requests, quarantine = hours.assembled(spans, hour_spans.imported(lake, hour), rules.edges)
    del spans
    samples = lake_taking.once("samples", lake.read("samples", None, hour - BEFORE, hour + HOUR + hour_spans.AROUND))
    return Raw(requests, quarantine, spoken, samples)


def as_rows(table: str, frame: pl.DataFrame) -> pa.Table:
    """A frame with the columns of a lake's table."""
    if frame.is_empty():
        return columns(table).empty_table()
    return conformed(frame.to_arrow(compat_level=pl.CompatLevel.oldest()), columns(table))


def settled(made: Made) -> int:
    """How many of an hour's requests are settled."""
    return int(pa.compute.sum(made.requests["is_settled"]).as_py() or 0)
