"""Spans of whole traces in, one row per logical request out. Tokens are counted once, from the leg that knows."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline import segments
from pipeline.conclusions import concluded, provenance
from pipeline.grouping import with_request
from pipeline.impossible import quarantined
from pipeline.joining import HEAD_ROLES, is_seeking, keys_of
from pipeline.legs import NUMBERS, SIGNALS, chosen, identified, with_source

COLUMNS = (
    *SIGNALS, "trace_id", "engine", "gateway", "replica", "started_at", "ended_at", "tpot_s", "concurrency",
    "levers", "arms", "input_bucket", "output_bucket", "cache_class", "batch_bucket", "concurrency_bucket", "temperature_bucket",
    "provenance", "flags",
)  # fmt: skip
OPEN_KEYS = {"join_key": "join_key", "trace_id": "trace_id", "since": "started_at", "until": "ended_at"}


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
    legs = with_source(with_request(spans))
    requests = identified(legs)
    for column in SIGNALS:
        if legs[column].null_count() == len(legs):
            nobody = pl.lit(None, legs.schema[column]).alias(column), pl.lit(None, pl.String).alias(f"{column}_from")
            requests = requests.with_columns(nobody)
        else:
            requests = requests.join(chosen(legs, column), on="group", how="left")
    requests, taken = quarantined(concluded(requests))
    requests = requests.with_columns(provenance((*NUMBERS, "tpot_s")))
    return Assembled(_with_buckets(requests, edges).select(COLUMNS), taken, _open_keys(legs))


def _open_keys(legs: pl.DataFrame) -> pl.DataFrame:
    """(join_key, trace_id, since, until) of what other traces may complete: not of a request that is whole in its own trace."""
    if not legs.select(is_seeking().any()).item():
        return pl.DataFrame(schema={name: legs.schema[column] for name, column in OPEN_KEYS.items()})
    of_engine = pl.col("role") == "engine"
    pair = (of_engine & (pl.col("phase") == "prefill")).any() & (of_engine & (pl.col("phase") == "decode")).any()
    whole = ((of_engine & ~is_seeking()).any() | pair) & (pl.col("trace_id").n_unique() == 1)
    seeking = legs.filter(pl.col("role").is_in(HEAD_ROLES) & is_seeking() & ~whole.over("group"))
    keys = keys_of(seeking).rename({"key": "join_key"}).join(seeking.select("row", "trace_id", "started_at", "ended_at"), on="row")
    return keys.select(pl.col(column).alias(name) for name, column in OPEN_KEYS.items()).unique(maintain_order=True)


def _with_buckets(requests: pl.DataFrame, edges: segments.Edges) -> pl.DataFrame:
    return requests.with_columns(
        segments.bucket("prompt_tokens", edges.input_tokens).alias("input_bucket"),
        segments.bucket("output_tokens", edges.output_tokens).alias("output_bucket"),
        segments.bucket("batch_at_admission", edges.batch).alias("batch_bucket"),
        segments.bucket("concurrency", edges.concurrency).alias("concurrency_bucket"),
        segments.temperature_bucket("temperature", edges.temperature).alias("temperature_bucket"),
        segments.cache_class().alias("cache_class"),
    )
