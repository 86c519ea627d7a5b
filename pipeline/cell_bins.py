"""Values in, bins of a fixed logarithmic histogram out: a bin is 2 % wide, so a value is known from its bin within 1 %.

Bins are the same for every metric, replica and time, so that histograms add up and can be subtracted (`floor(ln(x / 2 ms) / ln 1.02)`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from pipeline.arithmetic import counts, expression
from pipeline.metric_row import Metric
from queries.cells_histogram import FIRST, LAST_BIN, RATIO, ZERO_BIN

WIDTH = math.log(RATIO)
_PLACES = 4_096  # more than there are bins
RELATIVE_ERROR = math.sqrt(RATIO) - 1  # of a value that is given as the geometric middle of its bin


def bin_of(value: pl.Expr) -> pl.Expr:
    """The bin of each value, as a whole number of 16 bits; null where the value is null."""
    place = ((value.cast(pl.Float64).log() - math.log(FIRST)) / WIDTH).floor().clip(ZERO_BIN, LAST_BIN)
    return pl.when(value <= 0).then(pl.lit(ZERO_BIN, pl.Float64)).otherwise(place).cast(pl.Int16)


def with_bins(requests: pl.DataFrame, metrics: Sequence[Metric]) -> pl.DataFrame:
    """One row per request, in their order: a column of bins for each metric that has percentiles, under its name."""
    texts = {metric: metric.percentiles_of or (metric.numerator if metric.kind == "quantile" else "") for metric in metrics}
    return requests.select(
        bin_of(pl.when(counts(metric)).then(expression(text))).alias(metric.name) for metric, text in texts.items() if text
    )


def counted(binned: pl.DataFrame, groups: pl.Series) -> pl.DataFrame:
    """One row per group, metric and bin: the group's number under the name of `groups`, `metric`, `bin`, and `n`, how many rows it has."""
    name = groups.name
    frames = [pl.DataFrame(schema={name: groups.dtype, "metric": pl.String, "bin": pl.Int16, "n": pl.Int64})]
    for column in binned:
        held = pl.DataFrame({"place": groups.cast(pl.Int64) * _PLACES + (column - ZERO_BIN)}).drop_nulls().group_by("place").agg(n=pl.len())
        group, place = pl.col("place") // _PLACES, pl.col("place") % _PLACES + ZERO_BIN
        metric = pl.lit(column.name).alias("metric")
        frames.append(
            held.select(group.cast(groups.dtype).alias(name), metric, place.cast(pl.Int16).alias("bin"), pl.col("n").cast(pl.Int64))
        )
    return pl.concat(frames)


def middle(number: int) -> float:
    """The value that stands for a bin: the geometric middle of its edges, 0 for the lowest."""
    return 0.0 if number <= ZERO_BIN else FIRST * math.exp(WIDTH * (number + 0.5))
