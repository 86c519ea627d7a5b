"""Samples in, one row per replica out: how far its time series grew, beside what its requests say of the same."""

from __future__ import annotations

import polars as pl

from pipeline.series import DELTA, GATEWAYS, counted
from pipeline.traps import PAIRS

COUNTED = (
    "requests_total", "prompt_tokens_total", "cached_tokens_total", "cache_queried_tokens_total", "preemptions_total",
    "draft_tokens_total", "accepted_tokens_total", "kv_transfer_s", "kv_transfer_bytes", "kv_transfer_bytes_per_s", "tpot_s",
)  # fmt: skip


def grown(samples: pl.DataFrame) -> pl.DataFrame:
    """One row per replica: `since`, `until`, and how far each counter grew between its first and last sample.

    Of a histogram the sum of its observations counts, and their number as `<signal>_n`. A counter that fell began anew. Null where there
    is no such series.
    """
    asked = samples.filter(pl.col("signal").is_in(list(COUNTED))).with_columns(pl.col("labels").cast(PAIRS))
    counters = _moved(counted(asked), ["replica", "signal", "series"]).with_columns(pl.lit(None, pl.Float64).alias("observations"))
    histograms = asked.filter(pl.col("kind") == "histogram").with_columns(_told())
    histograms = histograms.filter(pl.col("engine").eq_missing(_own_word().over("replica", "signal")))
    of_histogram = ["replica", "signal", "name", "told", "sender"]
    histograms = _moved(histograms, of_histogram).with_columns(_growth("total", of_histogram).alias("observations"))
    kept = ["replica", "signal", "observed_at", "growth", "observations"]
    moved = pl.concat([counters.select(kept), histograms.select(kept)])
    sums = [_sum("growth", signal).alias(signal) for signal in COUNTED]
    numbers = [_sum("observations", signal).alias(f"{signal}_n") for signal in COUNTED if not signal.endswith("_total")]
    period = [pl.col("observed_at").min().alias("since"), pl.col("observed_at").max().alias("until")]
    return moved.group_by("replica", maintain_order=True).agg(*period, *sums, *numbers)


def compared(said: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """One row per replica with samples: `grown`, and beside it what its requests said (`guard_sums.together`).

    `peer_*` is the replica of the same model that skips the largest share of its prompts.
    """
    joined = grown(samples).rename({"tpot_s": "series_tpot_s"}).join(said.drop("since", "until"), on="replica", how="left")
    told = pl.col("cached_tokens_total") / _looked_up()
    joined = joined.with_columns(
        pl.coalesce("own_share", told).alias("skipped_share"),
        told.alias("counted_share"),
        _looked_up().alias("looked_up"),
    )
    best = joined.filter(pl.col("skipped_share").is_finite()).sort("skipped_share", descending=True).group_by("model").first()
    best = best.select("model", *(pl.col(name).alias(f"peer_{name}") for name in ("replica", "skipped_share", "block")))
    return joined.join(best, on="model", how="left")


def _moved(rows: pl.DataFrame, series: list[str]) -> pl.DataFrame:
    return rows.sort(*series, "observed_at").with_columns(_growth("value", series).alias("growth"))


def _growth(column: str, series: list[str]) -> pl.Expr:
    value = pl.col(column).cast(pl.Float64)
    before = value.shift().over(series)
    grown = pl.when(value >= before).then(value - before).when(value < before).then(value)
    return pl.when(pl.col("told").str.contains(DELTA, literal=True)).then(value).otherwise(grown)


def _told() -> pl.Expr:
    """The labels of a series as text."""
    pair = pl.concat_str(pl.element().struct.field("key"), pl.element().struct.field("value"), separator="=")
    return pl.col("labels").list.eval(pair).list.sort().list.join("\n").fill_null("").alias("told")


def _own_word() -> pl.Expr:
    """The engine whose word counts: not a gateway's, where another speaks of the same."""
    return pl.col("engine").sort_by(pl.col("engine").is_in(list(GATEWAYS)).fill_null(value=True), "engine").first()


def _sum(column: str, signal: str) -> pl.Expr:
    """The sum over a signal's series; null where none has grown or stood between two samples."""
    mine = pl.col(column).filter((pl.col("signal") == signal) & pl.col(column).is_not_null())
    return pl.when(mine.len() > 0).then(mine.sum())


def _looked_up() -> pl.Expr:
    """The tokens that the cache was asked for: counted as such, else all prompt tokens."""
    return pl.coalesce("cache_queried_tokens_total", "prompt_tokens_total")
