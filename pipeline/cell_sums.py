"""Metric rows and requests in, the sums that a cell keeps out: wide per request, and from wide sums back to one row per metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.arithmetic import counts, expression, is_known
from pipeline.metric_row import Metric

SUMS = ("known", "n", "num", "den", "num_sq", "den_sq", "num_den", "times")
# A sum that is the same as another and is not made: of a denominator of 1, of a numerator that is 0 or 1, where all that is known counts.
_SAME_AS = {"known": "n", "den": "n", "den_sq": "n", "num_den": "num", "num_sq": "num"}


def values(requests: pl.DataFrame, metrics: Sequence[Metric]) -> tuple[pl.DataFrame, list[Metric]]:
    """One row per request, in their order, with the columns `<metric>.<sum>` whose sums a cell keeps; and the metrics known of any request.

    A sum that is the same as another of its metric is left out.
    """
    marks = requests.with_columns(column for metric in metrics for column in _marks(metric))
    seen = [metric for metric in metrics if marks[_known(metric)].any()]
    inputs = {name for metric in seen for part in _parts(metric) for name in part.meta.root_names()}
    names = [name for metric in seen for name in _mark_names(metric)]
    wide = marks.select(*names, *sorted(inputs)).select(*names, *(column for metric in seen for column in _plain(metric)))
    return wide.with_columns(column for metric in seen for column in _products(metric)), seen


def added(wide: pl.DataFrame, groups: npt.NDArray[np.int64], count: int) -> pl.DataFrame:
    """The sums of each column over the rows of each group; row g is of group g, of `count` groups."""
    weights = ((column.name, column.cast(pl.Float64).to_numpy()) for column in wide)
    return pl.DataFrame({name: np.bincount(groups, weights=values, minlength=count) for name, values in weights})


def melted(wide: pl.DataFrame, metrics: Sequence[Metric], key: str, kind: pl.Enum) -> list[pl.DataFrame]:
    """A frame for each metric: one row per `key` and metric of which any request had its inputs: `key`, `metric` and SUMS."""
    lazy, columns = wide.lazy(), set(wide.columns)
    return pl.collect_all([_long(lazy, columns, metric.name, key, kind) for metric in metrics])


def _known(metric: Metric) -> str:
    return f"{metric.name}.{'known' if metric.known_when else 'n'}"


def _mark_names(metric: Metric) -> list[str]:
    return list(dict.fromkeys((f"{metric.name}.n", _known(metric))))


def _marks(metric: Metric) -> Iterator[pl.Expr]:
    """Whether a request is known for a metric and whether it counts, where the two may differ."""
    yield counts(metric).fill_null(value=False).alias(f"{metric.name}.n")
    if metric.known_when:
        yield is_known(metric).alias(f"{metric.name}.known")


def _parts(metric: Metric) -> list[pl.Expr]:
    return [expression(text) for text in (metric.numerator, metric.denominator, metric.times) if text]


def _plain(metric: Metric) -> Iterator[pl.Expr]:
    named = {"num": metric.numerator, "den": metric.denominator if metric.denominator != "1" else "", "times": metric.times}
    for name, text in named.items():
        if text:
            counted = pl.when(f"{metric.name}.n").then(expression(text).cast(pl.Float64)).otherwise(0.0)
            yield counted.alias(f"{metric.name}.{name}")


def _products(metric: Metric) -> Iterator[pl.Expr]:
    num, den = pl.col(f"{metric.name}.num"), pl.col(f"{metric.name}.den")
    if metric.kind != "share":
        yield (num * num).alias(f"{metric.name}.num_sq")
    if metric.denominator != "1":
        yield from ((den * den).alias(f"{metric.name}.den_sq"), (num * den).alias(f"{metric.name}.num_den"))


def _long(wide: pl.LazyFrame, columns: set[str], metric: str, key: str, kind: pl.Enum) -> pl.LazyFrame:
    chosen = [_sum(metric, name, columns) for name in SUMS]
    return wide.select(key, pl.lit(metric, kind).alias("metric"), *chosen).filter(pl.col("known") > 0)


def _sum(metric: str, name: str, columns: set[str]) -> pl.Expr:
    found = next((source for source in (name, _SAME_AS.get(name)) if f"{metric}.{source}" in columns), None)
    column = pl.col(f"{metric}.{found}") if found else pl.lit(0.0)
    return column.cast(pl.Int64 if name in ("known", "n") else pl.Float64).alias(name)
