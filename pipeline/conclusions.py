"""Requests with one value per signal in; what follows from them out: outcome, replicas, times per token, flags, provenance."""

from __future__ import annotations

import polars as pl

PAIRS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
SKEW_S = 0.1  # a span that reaches this far out of the one that called it, at either end: the clocks of two hosts differ


def concluded(requests: pl.DataFrame) -> pl.DataFrame:
    """The requests with their outcome, ids, replicas, whole times, decode time, time per output token and flags."""
    return _with_flags(_with_decoding(_with_whole_times(_with_names(_with_outcome(requests)))))


def provenance(columns: tuple[str, ...]) -> pl.Expr:
    """Column -> span, body, log or derived, as a list of pairs; a column that is null is left out."""
    if not columns:
        return pl.lit([], PAIRS).alias("provenance")
    pairs = []
    for column in columns:
        source = pl.lit("derived") if column == "tpot_s" else pl.col(f"{column}_from")
        said = pl.when(source.is_in(["body", "log", "derived"])).then(source).otherwise(pl.lit("span"))
        pairs.append(pl.when(pl.col(column).is_not_null()).then(pl.struct(pl.lit(column).alias("key"), said.alias("value"))))
    return pl.concat_list(pairs).list.drop_nulls().alias("provenance")


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


def _with_names(requests: pl.DataFrame) -> pl.DataFrame:
    decoded = pl.coalesce("decoded_by", "decode_replica")
    return requests.with_columns(
        pl.coalesce("request_id", pl.col("trace_id") + ":" + pl.col("head_span_id")).alias("request_id"),
        pl.when(pl.col("front").ne_missing(pl.col("engine"))).then(pl.col("front")).alias("gateway"),
        pl.coalesce("decode_replica", decoded, "served_by").alias("replica"),
        pl.coalesce("prefilled_by", "prefill_replica").alias("prefill_replica"),
        decoded.alias("decode_replica"),
    )


def _with_whole_times(requests: pl.DataFrame) -> pl.DataFrame:
    """End-to-end time and time to the first token of the whole request: a decode leg counts its own from when it was called."""
    theirs = (pl.col("e2e_s_from") == "authority") | (pl.col("e2e_s_from") == pl.col("ttft_s_from"))
    own = pl.col("e2e_s").is_null() | ~theirs.fill_null(False)  # else another's end-to-end time, beside the authority's first token
    requests = requests.with_columns(
        pl.when(own).then(pl.coalesce("span_s", "e2e_s")).otherwise(pl.col("e2e_s")).alias("e2e_s"),
        pl.when(own).then(pl.lit("authority")).otherwise(pl.col("e2e_s_from")).alias("e2e_s_from"),
    )
    if requests["prefill_started_at"].null_count() == len(requests):
        return requests.with_columns(_one_point().alias("one_point"))
    before_s = (pl.col("authority_started_at") - pl.col("prefill_started_at")).dt.total_microseconds() / 1e6
    requests = requests.with_columns(_one_point().alias("one_point"))
    for column in ("ttft_s", "e2e_s"):
        is_leg = ((before_s > 0) & (pl.col(f"{column}_from") == "authority")).fill_null(False)
        requests = requests.with_columns(
            pl.when(is_leg).then(pl.col(column) + before_s).otherwise(pl.col(column)).alias(column),
            pl.when(is_leg).then(pl.lit("derived")).otherwise(pl.col(f"{column}_from")).alias(f"{column}_from"),
        )
    return requests


def _one_point() -> pl.Expr:
    return pl.col("ttft_s_from") == pl.col("e2e_s_from")


def _with_decoding(requests: pl.DataFrame) -> pl.DataFrame:
    """Decode time, of one leg and one observation point; none of several samples, or where only the prefill leg is known."""
    unknown = (pl.col("authority_legs") > 1) | _is_prefill_alone()
    decode_s = pl.coalesce("decode_s", pl.when(pl.col("one_point")).then(pl.col("e2e_s") - pl.col("ttft_s")))
    requests = requests.with_columns(
        pl.when(unknown).then(None).otherwise(decode_s).alias("decode_s"),
        pl.when(pl.col("decode_s").is_null()).then(pl.lit("derived")).otherwise(pl.col("decode_s_from")).alias("decode_s_from"),
        pl.when(_is_prefill_alone()).then(None).otherwise(pl.col("output_tokens")).alias("output_tokens"),
    )
    tpot_s = pl.when(pl.col("output_tokens") >= 2).then(pl.col("decode_s") / (pl.col("output_tokens") - 1))
    return requests.with_columns(tpot_s.alias("tpot_s"), _positions(requests).alias("accepted_by_position"))


def _positions(requests: pl.DataFrame) -> pl.Expr:
    if requests["accepted_by_position"].null_count() == len(requests):
        return pl.lit(None, pl.List(pl.Int64))
    numbers = pl.col("accepted_by_position").str.extract_all(r"-?[0-9]+").cast(pl.List(pl.Int64), strict=False)
    return pl.when(pl.col("accepted_by_position").is_not_null()).then(numbers)


def _is_prefill_alone() -> pl.Expr:
    """Only the prefill leg of a pair is known: its one token is not the answer's length, its end not the answer's."""
    return pl.col("half_a_pair") & pl.col("decoded_by").is_null() & (pl.col("authority_role") == "engine")


def _with_flags(requests: pl.DataFrame) -> pl.DataFrame:
    negative = (pl.col("ttft_s") < 0) | (pl.col("e2e_s") < 0) | (pl.col("decode_s") < 0)
    skewed = pl.col("legs_contradict") | pl.col("ran_backwards") | (pl.col("outside_s") > SKEW_S)
    flags = {
        "multi_sample": pl.col("authority_legs") > 1,
        "preempted": pl.col("preemptions") > 0,
        "clock_skew": negative.fill_null(False) | skewed.fill_null(False),
        "partial": pl.col("half_a_pair"),
        "duplicate_leg": pl.col("told_twice"),
        "retried": pl.col("tried_again"),
        "body_only": pl.col("authority_role") == "body",
        "log_only": pl.col("authority_role") == "log",
        "replica_from_sender": pl.col("named_by_sender") & (pl.col("replica") == pl.col("served_by")),
    }
    named = [pl.when(condition.fill_null(False)).then(pl.lit(name)) for name, condition in flags.items()]
    return requests.with_columns(pl.concat_list(named).list.drop_nulls().alias("flags"), pl.lit(None, pl.Int64).alias("concurrency"))
