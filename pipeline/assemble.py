"""Spans of whole traces in, one row per logical request out. Tokens are counted once, from the leg that knows."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline import segments
from pipeline.conclusions import concluded, provenance
from pipeline.grouping import with_request
from pipeline.guard_legs import BODIES, with_bodies
from pipeline.impossible import quarantined
from pipeline.joining import HEAD_ROLES, is_seeking, keys_with_times
from pipeline.legs import NUMBERS, SIGNALS, chosen, identified, with_source
from pipeline.lone import identified_alone, split

COLUMNS = (
    *SIGNALS, "trace_id", "engine", "gateway", "replica", "started_at", "ended_at", "tpot_s", "concurrency",
    "levers", "arms", "input_bucket", "output_bucket", "cache_class", "batch_bucket", "concurrency_bucket", "temperature_bucket",
    "provenance", "flags",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assembled:
    """Rows of `requests`, of `quarantine`, and of `open_keys`: what other traces may still have to say of these requests."""

    requests: pl.DataFrame
    quarantine: pl.DataFrame
    open_keys: pl.DataFrame


def assemble(spans: pl.DataFrame, edges: segments.Edges) -> Assembled:
    """The requests of whole traces: one row per logical request, columns as the table `requests`, canonical units.

    `spans` has one row per span of those traces: its ids, role, dialect, status, times, replica, sender, signals, levers, arms.
    """
    alone, others = split(spans)
    grouped = with_request(others)
    legs = with_source(grouped)
    requests = _joined(legs) if alone.is_empty() else identified_alone(alone)
    if not (alone.is_empty() or legs.is_empty()):
        requests = pl.concat([requests, _joined(legs).select(*requests.columns, *BODIES)], how="diagonal_relaxed")
    requests, taken = quarantined(concluded(requests))
    told = [column for column in (*NUMBERS, "accepted_by_position", "tpot_s") if requests[column].null_count() < len(requests)]
    requests = requests.with_columns(provenance(tuple(told)))
    return Assembled(_with_buckets(requests, edges).select(COLUMNS), taken, _open_keys(grouped))


def _joined(legs: pl.DataFrame) -> pl.DataFrame:
    """One row per request of any number of legs, with one value per signal and the source that gave it."""
    requests = identified(legs)
    for column in SIGNALS:
        if legs[column].null_count() == len(legs):
            nobody = pl.lit(None, legs.schema[column]).alias(column), pl.lit(None, pl.String).alias(f"{column}_from")
            requests = requests.with_columns(nobody)
        else:
            requests = requests.join(chosen(legs, column), on="group", how="left")
    return with_bodies(requests, legs)


def _open_keys(legs: pl.DataFrame) -> pl.DataFrame:
    """What other traces may complete, as `open_keys` has it: not of a request that is whole in its own trace."""
    of_engine = pl.col("role") == "engine"
    pair = (of_engine & (pl.col("phase") == "prefill")).any() & (of_engine & (pl.col("phase") == "decode")).any()
    whole = ((of_engine & ~is_seeking()).any() | pair) & (pl.col("trace_id").n_unique() == 1)
    seeking = legs.filter(pl.col("role").is_in(HEAD_ROLES) & is_seeking())
    if not seeking.is_empty():
        seeking = legs.filter(pl.col("role").is_in(HEAD_ROLES) & is_seeking() & ~whole.over("group"))
    return keys_with_times(seeking).unique(maintain_order=True)


def _with_buckets(requests: pl.DataFrame, edges: segments.Edges) -> pl.DataFrame:
    return requests.with_columns(
        segments.bucket("prompt_tokens", edges.input_tokens).alias("input_bucket"),
        segments.bucket("output_tokens", edges.output_tokens).alias("output_bucket"),
        segments.bucket("batch_at_admission", edges.batch).alias("batch_bucket"),
        segments.bucket("concurrency", edges.concurrency).alias("concurrency_bucket"),
        segments.temperature_bucket("temperature", edges.temperature).alias("temperature_bucket"),
        segments.cache_class().alias("cache_class"),
    )
