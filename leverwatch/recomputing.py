"""The rows of sums behind a notice in, the metric's values and gain as today's code computes them out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import polars as pl

from alerts.effects import Effect
from alerts.sums import NANO, scale
from pipeline import compare
from pipeline.cell_bins import middle
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
    """What sums per block and arm say, percentiles by their bins of 2 %; None for what `compare` does not contrast."""
    if effect.basis == "switchback" or sums.is_empty():
        return None
    if metric in TAILS:
        return _percentile(TAILS[metric], sums)
    rows = compare.effects(_cells(lever, metric, sums), effect.until).filter(pl.col("metric") == metric)
    if rows.is_empty():
        return None
    row = rows.to_dicts()[0]
    return Recomputed(row["value_a"], row["value_b"], row["gain"], row["n_a"], row["n_b"])


def _percentile(share: float, sums: pl.DataFrame) -> Recomputed | None:
    """The percentile of both arms over the blocks that count, those in which both have values; of treated alone where control has none."""
    counts = sums.filter(pl.col("bin").is_not_null())
    both = counts.group_by("block_started_at_s").agg(pl.col("arm").n_unique().alias("arms"))
    if (counts["arm"] == "control").any():
        counts = counts.join(both.filter(pl.col("arms") == 2), on="block_started_at_s")
    treated, control = (_reached(share, counts.filter(pl.col("arm") == arm)) for arm in ("treated", "control"))
    if treated is None:
        return None
    gain = None if control is None else 1 - treated[0] / control[0]
    return Recomputed(treated[0], control[0] if control else None, gain, treated[1], control[1] if control else 0)


def _reached(share: float, counts: pl.DataFrame) -> tuple[float, int] | None:
    """The middle of the bin that a share of an arm's values reaches, and how many values there are."""
    upto = counts.group_by("bin").agg(pl.col("requests").sum()).sort("bin").with_columns(pl.col("requests").cum_sum())
    if upto.is_empty():
        return None
    total = int(upto["requests"][-1])
    place = upto.filter(pl.col("requests") >= share * total * (1 - 1e-9))["bin"][0]
    return middle(int(place)), total


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
