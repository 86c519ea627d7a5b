"""Rows of `requests` in, rows of `cells` out: the additive sums of every metric per judging segment, lever, arm, replica, block."""

from __future__ import annotations

import polars as pl

from pipeline import segments
from pipeline.arithmetic import counts, expression
from pipeline.metrics import METRICS, Metric

BLOCK_S = 300
OFF_SETTINGS = ("off", "none", "0", "disabled", "false")
CELL_KEYS = ("segment", "lever", "arm", "replica", "block_started_at")
REQUESTS = "requests"  # the pseudo-metric that counts a cell's requests, known or not


def cells(requests: pl.DataFrame) -> pl.DataFrame:
    """One row per judging segment, lever, arm, replica, block and metric (columns of the table `cells`)."""
    measured = [metric for metric in METRICS if metric.kind != "contrast"]
    frames = []
    for lever, rows in _by_lever(requests):
        keyed = rows.with_columns(pl.lit(lever).alias("lever"), pl.col("started_at").dt.truncate(f"{BLOCK_S}s").alias("block_started_at"))
        keyed = _with_segment(keyed, segments.keys_for(lever))
        counted = keyed.group_by(CELL_KEYS).agg(pl.len().cast(pl.Int64).alias("n"))
        zeros = [pl.lit(0.0).alias(name) for name in ("num", "den", "num_sq", "den_sq", "num_den")]
        frames.append(counted.with_columns(pl.lit(REQUESTS).alias("metric"), *zeros))
        frames.extend(_sums(keyed, metric) for metric in measured)
    columns = [*CELL_KEYS, "metric", "n", "num", "den", "num_sq", "den_sq", "num_den"]
    return pl.concat([frame.select(columns) for frame in frames]) if frames else pl.DataFrame()


def _sums(keyed: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    num, den = pl.col("num"), pl.col("den")
    known = keyed.filter(counts(metric)).with_columns(
        expression(metric.numerator).cast(pl.Float64).alias("num"), expression(metric.denominator).cast(pl.Float64).alias("den")
    )
    sums = known.group_by(CELL_KEYS).agg(
        pl.len().cast(pl.Int64).alias("n"),
        num.sum(),
        den.sum(),
        (num * num).sum().alias("num_sq"),
        (den * den).sum().alias("den_sq"),
        (num * den).sum().alias("num_den"),
    )
    return sums.with_columns(pl.lit(metric.name).alias("metric"))


def _by_lever(requests: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The requests under each lever that their arms or settings name, with their `arm`; names that senders made up are left out."""
    marked = requests.with_columns(_pairs("arms"), _pairs("levers"))
    arm_of = marked.select("row", pl.col("arms")).explode("arms").drop_nulls().unnest("arms").rename({"key": "lever", "value": "arm"})
    setting_of = marked.select("row", pl.col("levers")).explode("levers").drop_nulls().unnest("levers").rename({"key": "lever"})
    both = setting_of.join(arm_of, on=["row", "lever"], how="full", coalesce=True)
    off = pl.col("value").str.to_lowercase().is_in(list(OFF_SETTINGS))
    by_setting = pl.when(off).then(pl.lit("disabled_in_place")).otherwise(pl.lit("treated"))
    both = both.with_columns(pl.coalesce("arm", by_setting).alias("arm")).select("row", "lever", "arm")
    both = both.filter(pl.col("arm").is_in(segments.ARMS))
    named = set(both["lever"].to_list())
    levers = [lever for lever in segments.LEVERS if lever in named]
    return [(lever, requests.join(both.filter(pl.col("lever") == lever).drop("lever"), on="row")) for lever in levers]


def _pairs(column: str) -> pl.Expr:
    """A map column as a list of key/value pairs."""
    return pl.col(column).cast(pl.List(pl.Struct({"key": pl.String, "value": pl.String})))


def _with_segment(requests: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    requests = requests.filter(pl.any_horizontal(pl.col(key).is_not_null() for key in keys))  # `{}` would be all traffic
    distinct = requests.select(keys).unique()
    named = distinct.with_columns(pl.Series("segment", [segments.canonical(row) for row in distinct.to_dicts()], dtype=pl.String))
    return requests.join(named, on=list(keys), nulls_equal=True)
