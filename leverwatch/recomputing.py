"""The rows of sums behind a notice in, the metric's values and gain as today's code computes them out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import polars as pl

from alerts.effects import Effect
from alerts.sums import NANO, scale
from pipeline import compare
from pipeline.measure import REQUESTS
from pipeline.metrics import TAILS, judged

_CELL = ("lever", "segment", "metric", "arm", "block_started_at", "n", "num", "den")


class Recomputed(NamedTuple):
    """A metric's values in its unit, the gain as a ratio, and the requests of both arms that they are of."""

    treated: float | None
    control: float | None
    gain: float | None
    n_treated: int
    n_control: int


def recomputed(lever: str, metric: str, sums: pl.DataFrame, effect: Effect) -> Recomputed | None:
    """What sums per block and arm say; None for percentiles, whose rows are bins, and for what `compare` does not contrast."""
    if metric in TAILS or effect.basis == "switchback" or sums.is_empty():
        return None
    rows = compare.effects(_cells(lever, metric, sums), effect.until).filter(pl.col("metric") == metric)
    if rows.is_empty():
        return None
    row = rows.to_dicts()[0]
    return Recomputed(row["value_a"], row["value_b"], row["gain"], row["n_a"], row["n_b"])


def _cells(lever: str, metric: str, sums: pl.DataFrame) -> pl.DataFrame:
    """The sums as cells: durations were summed as whole nanoseconds. Net ITL is made of the sums of TPOT and TTFT."""
    base, row = ("tpot_s" if metric == "net_itl_s" else metric), judged()[metric]
    num = pl.col("numerator") / scale(row.numerator, row.unit)
    told = [_of(base, pl.col("n"), num, pl.col("denominator") / scale(row.denominator, "tokens"))]
    told += [_of(REQUESTS, pl.col("requests"), pl.col("requests"), pl.col("requests"))]
    if metric == "net_itl_s":
        told += [_of("ttft_s", pl.col("ttft_n"), pl.col("ttft_ns") / NANO, pl.col("ttft_n"))]
    starts = [datetime.fromtimestamp(second, UTC) for second in sums["block_started_at_s"].to_list()]
    named = sums.with_columns(
        pl.lit(lever).alias("lever"), pl.lit("{}").alias("segment"), pl.Series("block_started_at", starts, pl.Datetime("us", "UTC"))
    )
    return pl.concat([named.with_columns(*columns).select(_CELL) for columns in told])


def _of(metric: str, n: pl.Expr, num: pl.Expr, den: pl.Expr) -> tuple[pl.Expr, ...]:
    whole, real = (n.cast(pl.Int64).alias("n"),), {"num": num, "den": den}
    return (pl.lit(metric).alias("metric"), *whole, *(one.cast(pl.Float64).fill_null(0.0).alias(name) for name, one in real.items()))
