"""Spans of whole traces in, one row per logical request out. Tokens are counted once, from the leg that knows."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline import segments
from pipeline.grouping import with_request
from pipeline.impossible import quarantined

# What is asked first for a value: the leg with authority, the engine's other legs, its stages, the body, gateway, client.
SOURCES = ("authority", "engine", "stage", "body", "gateway", "client")
SUMMED = ("output_tokens", "draft_tokens", "accepted_tokens", "verify_steps", "kv_transfer_bytes")
TEXTS = (
    "request_id", "engine_version", "model", "tenant", "route", "prefill_replica", "decode_replica", "outcome", "finish_reason",
    "hardware", "topology",
)  # fmt: skip
NUMBERS = (
    "prompt_tokens", "cached_tokens", "output_tokens", "queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "draft_tokens",
    "accepted_tokens", "verify_steps", "kv_transfer_bytes", "kv_transfer_s", "link_peak_bytes_per_s", "batch_at_admission",
    "queue_depth", "kv_usage", "preemptions", "gpus", "temperature", "samples_n",
)  # fmt: skip
SIGNALS = (*TEXTS, *NUMBERS)
COLUMNS = (
    *SIGNALS, "trace_id", "engine", "gateway", "replica", "started_at", "ended_at", "tpot_s", "accepted_by_position", "concurrency",
    "levers", "arms", "input_bucket", "output_bucket", "cache_class", "batch_bucket", "concurrency_bucket", "temperature_bucket",
    "provenance", "flags",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assembled:
    """Rows of `requests` and of `quarantine`."""

    requests: pl.DataFrame
    quarantine: pl.DataFrame


def assemble(spans: pl.DataFrame, edges: segments.Edges) -> Assembled:
    """The requests of whole traces: one row per logical request, columns as the table `requests`, canonical units.

    `spans` has one row per span of those traces: its ids, role, dialect, status, times, replica, sender, signals, levers, arms.
    """
    legs = with_request(spans)
    legs = _with_source(legs)
    requests = _identified(legs)
    for column in SIGNALS:
        if legs[column].null_count() == len(legs):
            nobody = pl.lit(None, legs.schema[column]).alias(column), pl.lit(None, pl.String).alias(f"{column}_from")
            requests = requests.with_columns(nobody)
        else:
            requests = requests.join(_chosen(legs, column), on="group", how="left")
    requests = _with_derived(_with_outcome(requests))
    requests, taken = quarantined(requests)
    requests = requests.with_columns(_provenance())
    return Assembled(_with_buckets(requests, edges).select(COLUMNS), taken)


def _with_source(legs: pl.DataFrame) -> pl.DataFrame:
    """Names the leg with authority (engine before gateway before client; the decode leg of a pair; the latest) and each leg's source."""
    rank = pl.col("role").replace_strict({"engine": 0, "gateway": 2, "client": 3, "body": 4}, default=9, return_dtype=pl.Int64)
    rank = rank + pl.when(pl.col("phase") == "prefill").then(1).otherwise(0)
    first = (
        legs.with_columns(rank.alias("rank"))
        .sort("group", "rank", pl.col("ended_at"), "row", descending=[False, False, True, False])
        .unique("group", keep="first", maintain_order=True)
        .select("group", *(pl.col(c).alias(f"first_{c}") for c in ("role", "phase", "join_key", "row")))
    )
    legs = legs.join(first, on="group", how="left")
    same_key = pl.col("join_key").eq_missing(pl.col("first_join_key")) & pl.col("join_key").is_not_null()
    has_authority = (
        (pl.col("role") == pl.col("first_role"))
        & pl.col("phase").eq_missing(pl.col("first_phase"))
        & (same_key | (pl.col("row") == pl.col("first_row")))
    )
    return legs.with_columns(pl.when(has_authority).then(pl.lit("authority")).otherwise(pl.col("role")).alias("source"))


def _identified(legs: pl.DataFrame) -> pl.DataFrame:
    """One row per request: who spoke, where and when it was served, its marks, its flags."""
    of_authority = pl.col("source") == "authority"
    engine_leg = pl.col("role") == "engine"
    served = engine_leg & (pl.col("phase").is_null() | (pl.col("phase") == "decode"))
    timed = engine_leg | of_authority
    return legs.group_by("group", maintain_order=True).agg(
        pl.col("trace_id").first(),
        pl.col("span_id").filter(pl.col("row") == pl.col("group")).first().alias("head_span_id"),
        pl.col("dialect").filter(of_authority).first().alias("engine"),
        pl.col("first_role").first().alias("authority_role"),
        pl.col("dialect").filter(pl.col("role").is_in(["gateway", "client"])).first().alias("front"),
        pl.col("replica").filter(served).first().alias("served_by"),
        pl.col("replica").filter(engine_leg & (pl.col("phase") == "prefill")).first().alias("prefilled_by"),
        pl.col("replica").filter(engine_leg & (pl.col("phase") == "decode")).first().alias("decoded_by"),
        (pl.col("replica") == pl.col("sender")).filter(served).any().alias("named_by_sender"),
        pl.col("started_at").filter(timed).min(),
        pl.col("ended_at").filter(timed).max(),
        pl.col("duration_s").filter(of_authority).max().alias("span_s"),
        (pl.col("status") == "error").filter(pl.col("role") != "stage").any().alias("failed"),
        (pl.col("status") == "error").filter(pl.col("role") == "stage").any().alias("stage_failed"),
        of_authority.sum().alias("authority_legs"),
        pl.col("levers").drop_nulls().first(),
        pl.col("arms").drop_nulls().first(),
    )


def _chosen(legs: pl.DataFrame, column: str) -> pl.DataFrame:
    """One signal per request, and the source that gave it: (group, column, column_from)."""
    known = legs.filter(pl.col(column).is_not_null()).select("group", "row", "phase", "source", column)
    order = pl.col("source").replace_strict({name: place for place, name in enumerate(SOURCES)}, default=9, return_dtype=pl.Int64)
    if column == "cached_tokens":  # the decode leg of a pair may report prompt - 1 (vllm#43370): the prefill leg knows
        order = pl.when(pl.col("phase") == "prefill").then(-1).otherwise(order)
    known = known.with_columns(order.alias("order"))
    best = known.filter(pl.col("order") == pl.col("order").min().over("group"))
    value = pl.col(column).max()
    if column in SUMMED:  # summed as reals: whole numbers near 2^63 would wrap to plausible ones, and not be quarantined
        value = pl.col(column).cast(pl.Float64).sum().clip(-(2.0**62), 2.0**62).cast(pl.Int64)
    if column in TEXTS:
        value = pl.col(column).sort_by("row").last()
    return best.group_by("group").agg(value.alias(column), pl.col("source").first().alias(f"{column}_from"))


def _with_outcome(requests: pl.DataFrame) -> pl.DataFrame:
    aborted = pl.col("finish_reason").str.contains("abort").fill_null(False)
    cut = pl.col("stage_failed") & pl.col("output_tokens").is_null()
    said = (
        pl.when(pl.col("outcome").is_not_null())
        .then(pl.col("outcome"))
        .when(pl.col("failed"))
        .then(pl.lit("error"))
        .when(aborted | cut)
        .then(pl.lit("aborted"))
        .otherwise(pl.lit("ok"))
    )
    return requests.with_columns(said.alias("outcome"))


def _with_derived(requests: pl.DataFrame) -> pl.DataFrame:
    """What follows from the signals: ids, replicas, end-to-end and decode time, time per output token, flags."""
    decoded = pl.coalesce("decoded_by", "decode_replica")
    front = pl.when(pl.col("front") != pl.col("engine")).then(pl.col("front"))
    requests = requests.with_columns(
        pl.coalesce("request_id", pl.col("trace_id") + ":" + pl.col("head_span_id")).alias("request_id"),
        front.alias("gateway"),
        pl.coalesce("decode_replica", decoded, "served_by").alias("replica"),
        pl.coalesce("prefilled_by", "prefill_replica").alias("prefill_replica"),
        decoded.alias("decode_replica"),
        pl.coalesce("e2e_s", "span_s").alias("e2e_s"),
        pl.when(pl.col("e2e_s").is_null()).then(pl.lit("authority")).otherwise(pl.col("e2e_s_from")).alias("e2e_s_from"),
    )
    many = pl.col("authority_legs") > 1
    one_point = pl.col("ttft_s_from") == pl.col("e2e_s_from")
    decode_s = pl.coalesce("decode_s", pl.when(one_point).then(pl.col("e2e_s") - pl.col("ttft_s")))
    requests = requests.with_columns(
        pl.when(many).then(None).otherwise(decode_s).alias("decode_s"),
        pl.when(pl.col("decode_s").is_null()).then(pl.lit("derived")).otherwise(pl.col("decode_s_from")).alias("decode_s_from"),
    )
    flags = {
        "multi_sample": many,
        "preempted": pl.col("preemptions") > 0,
        "body_only": pl.col("authority_role") == "body",
        "replica_from_sender": pl.col("named_by_sender") & (pl.col("replica") == pl.col("served_by")),
    }
    named = [pl.when(condition.fill_null(False)).then(pl.lit(name)) for name, condition in flags.items()]
    return requests.with_columns(
        pl.when(pl.col("output_tokens") >= 2).then(pl.col("decode_s") / (pl.col("output_tokens") - 1)).alias("tpot_s"),
        pl.concat_list(named).list.drop_nulls().alias("flags"),
        pl.lit(None, pl.List(pl.Int64)).alias("accepted_by_position"),
        pl.lit(None, pl.Int64).alias("concurrency"),
    )


def _provenance() -> pl.Expr:
    """Column -> span, body or derived, as a list of pairs; a column that is null is left out."""
    pairs = []
    for column in NUMBERS:
        source = pl.col(f"{column}_from")
        said = pl.when(source == "body").then(pl.lit("body")).when(source == "derived").then(pl.lit("derived")).otherwise(pl.lit("span"))
        pairs.append(pl.when(pl.col(column).is_not_null()).then(pl.struct(pl.lit(column).alias("key"), said.alias("value"))))
    pairs.append(pl.when(pl.col("tpot_s").is_not_null()).then(pl.struct(pl.lit("tpot_s").alias("key"), pl.lit("derived").alias("value"))))
    return pl.concat_list(pairs).list.drop_nulls().alias("provenance")


def _with_buckets(requests: pl.DataFrame, edges: segments.Edges) -> pl.DataFrame:
    return requests.with_columns(
        segments.bucket("prompt_tokens", edges.input_tokens).alias("input_bucket"),
        segments.bucket("output_tokens", edges.output_tokens).alias("output_bucket"),
        segments.bucket("batch_at_admission", edges.batch).alias("batch_bucket"),
        segments.bucket("concurrency", edges.concurrency).alias("concurrency_bucket"),
        segments.temperature_bucket("temperature", edges.temperature).alias("temperature_bucket"),
        segments.cache_class().alias("cache_class"),
    )
