"""Errors in the store in, how many incidents each arm of a lever had in each block out: bursts collapsed, named by judging segments.

Errors of one class on one replica within ten seconds are one incident, of the arm whose error ended first; and of one replica and class at
most three in a block count, since a replica that is down for an hour is no more evidence than one that was down for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import polars as pl

from pipeline import segments
from pipeline.cell_marks import with_marks
from pipeline.inference.incidents import WINDOW_S
from pipeline.measure import BLOCK_S, WITH_BATCH
from queries import files, ranged
from queries.store import Store

BLOCK = timedelta(seconds=BLOCK_S)
LONGEST_S = 3_600
MOST_A_BLOCK = 3
OTHER = '{"segment":"other"}'
_TENANT = '"tenant":'


def counts(store: Store, ends: Sequence[datetime], cells: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """For each end of a block, in order, the incidents that ended in it: lever, segment, arm, `n`. `cells` name the segments told apart."""
    known = cells.select("lever", "segment").unique()
    by_tenant = bool(known["segment"].str.contains(_TENANT, literal=True).any())
    found = named(_errors(store, ends[0] - BLOCK, ends[-1]), known, by_tenant=by_tenant)
    parts = found.partition_by("block_started_at", as_dict=True, include_key=False)
    for end in ends:
        yield parts.get((end - BLOCK,), found.drop("block_started_at").clear())


def named(errors: pl.DataFrame, known: pl.DataFrame, *, by_tenant: bool = False) -> pl.DataFrame:
    """Incidents by lever, segment, arm and `block_started_at`: `n`. Segments that are not `known` under a lever count as `other`."""
    marked, arms = with_marks(errors)
    armed = marked.join(arms.filter(pl.col("arm").is_in(["treated", "control"])), on="marks")
    placed = _with_segments(armed, known, by_tenant).sort("first")
    source = ["lever", "segment", "replica", "error_class"]
    incidents = placed.group_by(*source, "window_started_at", maintain_order=True).agg(pl.col("arm").first())
    incidents = incidents.with_columns(pl.col("window_started_at").dt.truncate(f"{BLOCK_S}s").alias("block_started_at"))
    within = pl.col("window_started_at").rank("dense").over(*source, "block_started_at") <= MOST_A_BLOCK
    counted = incidents.filter(within).group_by("lever", "segment", "arm", "block_started_at", maintain_order=True)
    return counted.agg(pl.len().cast(pl.Float64).alias("n"))


def _errors(store: Store, since: datetime, until: datetime) -> pl.DataFrame:
    asked = {"since": since, "until": until, "window_s": WINDOW_S, "longest_s": LONGEST_S}
    with store.snapshot() as seen:
        near = ranged.relation(store, seen, "requests", since - timedelta(seconds=LONGEST_S), until)
        return seen.frame(f"with requests as (\n{near}\n)\n{files.question('incident_errors')}", asked)


def _with_segments(errors: pl.DataFrame, known: pl.DataFrame, by_tenant: bool) -> pl.DataFrame:
    """The errors with `segment`: of the keys that each lever has."""
    names = list(segments.CELL_SEGMENT_KEYS)
    of_lever = {"temperature_bucket": pl.col("lever") == WITH_BATCH, "topology": ~pl.col("lever").is_in(segments.TOPOLOGY_LEVERS)}
    keyed = errors.with_columns(
        *(pl.when(condition).then(key).alias(key) for key, condition in of_lever.items()),
        (pl.col("tenant") if by_tenant else pl.lit(None, pl.String)).alias("tenant"),
    )
    distinct = keyed.select("lever", *names).unique()
    texts = [segments.canonical({name: row[name] for name in names}) for row in distinct.iter_rows(named=True)]
    told = distinct.with_columns(pl.Series("text", texts, dtype=pl.String))
    apart = known.select("lever", pl.col("segment").alias("text"), pl.col("segment"))
    told = told.join(apart, on=["lever", "text"], how="left").with_columns(pl.col("segment").fill_null(OTHER)).drop("text")
    return keyed.join(told, on=["lever", *names], nulls_equal=True)
