"""A metric row and rows of `requests` in, its value, n and coverage out: for tests, explanations and bottlenecks. Reports ask by SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from pipeline.arithmetic import counts, expression, is_known
from pipeline.metric_row import Metric
from queries.metric_sql import QUANTILES, virtual_columns

STARTED_S = pl.col("started_at").dt.epoch("us").cast(pl.Float64) / 1e6


class UnworkableMetricError(ValueError):
    """A metric cannot be worked out from one set of requests: a contrast, a label, a score."""


@dataclass(frozen=True, slots=True)
class Value:
    """A metric's value in its unit (None: not known), of how many requests, the share that is known, and its percentiles by tag."""

    value: float | None
    n: int
    coverage: float | None
    percentiles: Mapping[str, float] = field(default_factory=dict)


def value(metric: Metric, requests: pl.DataFrame, period_s: float | None = None) -> Value:
    """What a metric is of these requests; `period_s` is what a rate is per second of, by default the time from first start to last end.

    A quantile metric has no value but its percentiles. A virtual column that the frame lacks is not known.

    Raises:
        UnworkableMetricError: a contrast, a label, or a metric that is not read from `requests`.
    """
    if metric.kind in ("contrast", "label") or not metric.numerator:
        msg = f"metric {metric.name}: kind {metric.kind!r} is not worked out from one set of requests; the report answers it"
        raise UnworkableMetricError(msg)
    rows = _with_inputs(metric, requests)
    counting = rows.filter("counts")
    coverage = _float(rows["known"].mean())
    percentiles = _percentiles(counting["percentile"]) if metric.kind == "quantile" or metric.percentiles_of else {}
    found = _rate(counting, _period_s(requests, period_s)) if metric.kind == "rate" and coverage else _value(metric, counting)
    return Value(found, counting.height, coverage, percentiles)


def _with_inputs(metric: Metric, requests: pl.DataFrame) -> pl.DataFrame:
    """The requests with what each adds: `num`, `den`, `times`, `percentile`, and whether it is known and counts."""
    absent = [pl.lit(None, pl.Float64).alias(name) for name in virtual_columns(metric) if name not in requests.columns]
    texts = {"num": metric.numerator, "den": metric.denominator, "times": metric.times or "1", "percentile": _percentile_text(metric)}
    inputs = [expression(text).cast(pl.Float64).alias(name) for name, text in texts.items()]
    counted = counts(metric).fill_null(value=False)
    return requests.with_columns(*absent).with_columns(*inputs, is_known(metric).alias("known"), counted.alias("counts"))


def _percentile_text(metric: Metric) -> str:
    return metric.percentiles_of or (metric.numerator if metric.kind == "quantile" else "None")


def _rate(counting: pl.DataFrame, period_s: float | None) -> float | None:
    """Per second of the period; 0 where what is known does not count, such as goodput of requests that all failed."""
    return _divided(float(counting["num"].sum()), period_s)


def _value(metric: Metric, rows: pl.DataFrame) -> float | None:
    if rows.is_empty():
        return None
    num = float(rows["num"].sum())
    if metric.kind in ("mean", "share"):
        return num / rows.height
    if metric.kind == "ratio":
        return _divided(num, float(rows["den"].sum()))
    if metric.kind == "product":
        return _divided(num / rows.height * float(rows["times"].sum()), float(rows["den"].sum()))
    if metric.kind == "spread":
        sums = rows.group_by(metric.across).agg(pl.col("num").sum())["num"]
        return _divided(_float(sums.max()), _float(sums.mean()))
    return _slope(metric, rows) if metric.kind == "slope" else None


def _slope(metric: Metric, rows: pl.DataFrame) -> float | None:
    """The least-squares slope over started_at, each level of `across` about its own means."""
    about = [(column - column.mean().over(metric.across)).alias(name) for name, column in (("x", STARTED_S), ("y", pl.col("num")))]
    moved = rows.select(about)
    return _divided(float((moved["x"] * moved["y"]).sum()), float((moved["x"] * moved["x"]).sum()))


def _percentiles(values: pl.Series) -> dict[str, float]:
    known = values.drop_nulls()
    return {tag: float(known.quantile(share, "linear") or 0.0) for tag, share in QUANTILES} if len(known) else {}


def _period_s(requests: pl.DataFrame, period_s: float | None) -> float | None:
    if period_s is not None or not {"started_at", "ended_at"} <= set(requests.columns):
        return period_s
    span = requests.select((pl.col("ended_at").max() - pl.col("started_at").min()).dt.total_microseconds()).item()
    return None if span is None else float(span) / 1e6


def _divided(numerator: float | None, denominator: float | None) -> float | None:
    return numerator / denominator if numerator is not None and denominator else None


def _float(found: object) -> float | None:
    return float(str(found)) if found is not None else None
