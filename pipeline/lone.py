"""Spans of whole traces in; those that are a request all by themselves out, told by a look at their own columns.

Most of what a fleet of engines sends is one span a request. Joining its legs, of which there is one, would cost most of assembly's time.
"""

from __future__ import annotations

import polars as pl

from pipeline.joining import is_seeking, stated_keys
from pipeline.legs import SIGNALS, SUMMED


def split(spans: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(the spans that stand alone, all others): an engine's whole request, alone in its trace, for which no other span here asks."""
    whole = (pl.col("role") == "engine") & pl.col("phase").is_null() & pl.col("pool").is_null() & ~is_seeking()
    apart = whole & (pl.col("samples_n").fill_null(1) < 2) & (pl.col("output_tokens") != 1).fill_null(True)
    if spans["trace_id"].n_unique() < len(spans):
        apart = apart & pl.col("trace_id").is_unique()
    spans = spans.with_columns(apart.fill_null(False).alias("alone"))
    others = spans.filter(~pl.col("alone"))
    if not others.is_empty():
        asked = stated_keys(others)["join_key"].unique().implode()
        is_asked = pl.col("join_key").is_in(asked).fill_null(False) | pl.col("request_id").is_in(asked).fill_null(False)
        spans = spans.with_columns(pl.col("alone") & ~is_asked)
        others = spans.filter(~pl.col("alone"))
    return spans.filter("alone").drop("alone"), others.drop("alone")


def identified_alone(spans: pl.DataFrame) -> pl.DataFrame:
    """One row per span, with what `legs.identified` and `legs.chosen` tell of a request of one leg."""
    nothing = pl.lit(None, pl.String)
    columns = {
        "trace_id": pl.col("trace_id"),
        "head_span_id": pl.col("span_id"),
        "engine": pl.col("dialect"),
        "authority_role": pl.lit("engine"),
        "front": nothing,
        "served_by": pl.col("replica"),
        "prefilled_by": nothing,
        "decoded_by": nothing,
        "named_by_sender": (pl.col("replica") == pl.col("sender")).fill_null(False),
        "started_at": pl.col("started_at"),
        "ended_at": pl.col("ended_at"),
        "authority_started_at": pl.col("started_at"),
        "prefill_started_at": pl.lit(None, spans.schema["started_at"]),
        "legs_contradict": pl.lit(None, pl.Boolean),
        "ran_backwards": pl.col("duration_s") < 0,
        "outside_s": pl.lit(0.0),
        "span_s": pl.col("duration_s"),
        "failed": pl.col("status") == "error",
        "stage_failed": pl.lit(False),
        "authority_legs": pl.lit(1, pl.UInt32),
        "half_a_pair": pl.lit(False),
        "told_twice": pl.lit(False),
        "tried_again": (pl.col("retried") > 0).fill_null(False),
        "levers": pl.col("levers"),
        "arms": pl.col("arms"),
    }
    inferred = {name for names in spans["inferred"].drop_nulls().unique() for name in names.split(",")}
    for signal in SIGNALS:
        value = pl.col(signal)
        if signal in SUMMED:  # as `legs.chosen` sums them
            value = value.cast(pl.Float64).clip(-(2.0**62), 2.0**62).cast(pl.Int64)
        empty = spans[signal].null_count() == len(spans)
        columns[signal] = value
        said = pl.lit("authority")
        if signal in inferred:
            said = pl.when(pl.col("inferred").str.split(",").list.contains(signal)).then(pl.lit("derived")).otherwise(said)
        columns[f"{signal}_from"] = nothing if empty else pl.when(value.is_not_null()).then(said)
    return spans.select(expression.alias(name) for name, expression in columns.items())
