"""Metrics that one pass over requests answers in, the select items of that pass out: ratio, mean, share, quantile, product."""

from __future__ import annotations

from collections.abc import Sequence

from queries import provenance_digits
from queries.metric_sql import QUANTILES, MetricRow
from queries.report_parts import Part, inputs, mark, marks, said, sums, words

KINDS = ("ratio", "mean", "share", "quantile", "product", "label")
_SHARES = ", ".join(str(share) for _, share in QUANTILES)


def plain(names: Sequence[str], metrics: Sequence[MetricRow], *, is_counted: bool = False) -> Part:
    """`plain`: one row per segment with its requests and the metrics that need no other pass. A label's word is made of its frame.

    It is made of `counted`: keys, requests, sums, counts and percentiles; where that `is_counted`, it is a table already.
    """
    chosen = [metric for metric in metrics if metric.kind in KINDS]
    columns = words(metrics)
    inner = [*names, *(column for column, _ in columns), *(item for metric in chosen for item in marks(metric))]
    items = [item for metric in chosen for item in (*_sums(metric), *sums(metric))]
    items += [f"bit_or({column}) as {column}" for column, _ in columns]
    said_of = [item for column, told in columns for item in _told(column, told)]
    said_of += [f"'span' as {mark(metric, 'said')}" for metric in metrics if metric.numerator and not inputs(metric)]
    rows = f"select {', '.join(inner) or '1'} from rows"
    counted = f"counted as (select {', '.join([*names, 'count(*) as requests', *items])} from ({rows}) group by all)"
    table = f"plain as (select {', '.join(['*', *map(_value, _valued(chosen)), *said_of])} from counted)"
    return Part(
        "plain", (table,) if is_counted else (counted, table), {name: text for metric in chosen for name, text in _shown(metric).items()}
    )


def _told(column: str, metrics: Sequence[MetricRow]) -> list[str]:
    """Where the inputs of metrics come from, in words."""
    return [f"{provenance_digits.words(column, place)} as {mark(metric, 'said')}" for place, metric in enumerate(metrics)]


def _sums(metric: MetricRow) -> list[str]:
    tags = ["num"] * _has_value(metric) + ["den"] * (_has_value(metric) and metric.denominator != "1") + ["times"] * bool(metric.times)
    items = [f"sum({mark(metric, tag)}) as {mark(metric, tag)}" for tag in tags]
    of = mark(metric, "num") if metric.kind == "quantile" else mark(metric, "pct") if metric.percentiles_of else ""
    return [*items, f"quantile_cont({of}, [{_SHARES}]) as {mark(metric, 'percentiles')}"] if of else items


def _has_value(metric: MetricRow) -> bool:
    return metric.kind not in ("quantile", "label")


def _valued(metrics: Sequence[MetricRow]) -> list[MetricRow]:
    return [metric for metric in metrics if _has_value(metric)]


def _value(metric: MetricRow) -> str:
    num, den, times, n, value = (mark(metric, tag) for tag in ("num", "den", "times", "n", "value"))
    below = n if metric.denominator == "1" else den
    if metric.kind == "product":
        return f"{num} / nullif({n}, 0) * {times} / nullif({below}, 0) as {value}"
    return f"{num} / nullif({below if metric.kind == 'ratio' else n}, 0) as {value}"


def _shown(metric: MetricRow) -> dict[str, str]:
    shown: dict[str, str] = {}
    if metric.kind == "label":
        shown[metric.name] = "null::varchar"
    elif metric.kind != "quantile":
        shown[metric.name] = f"plain.{mark(metric, 'value')}"
    if metric.kind == "quantile" or metric.percentiles_of:
        listed_as = f"plain.{mark(metric, 'percentiles')}"
        shown |= {f"{metric.name}_{tag}": f"{listed_as}[{place}]" for place, (tag, _) in enumerate(QUANTILES, 1)}
    return shown | said(metric, "plain") | ({f"{metric.name}_evidence": "null::varchar"} if metric.kind == "label" else {})
