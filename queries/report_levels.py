"""Metrics that tell a segment's replicas apart in, the passes that answer them out: spread, and slope about each replica's own means."""

from __future__ import annotations

from collections.abc import Sequence

from queries.metric_sql import MetricRow
from queries.report_parts import Part, listed, mark, marks, said, sums

KINDS = ("spread", "slope")
SINCE = "timestamptz '2020-01-01 00:00:00+00'"  # near the times at hand: sums of squares of seconds since 1970 lose digits
AFTER_S = f"epoch_us(started_at - {SINCE}) / 1e6"


def levels(names: Sequence[str], metrics: Sequence[MetricRow]) -> list[Part]:
    """A part for the metrics of each column that they are levelled by: sums per level, then one row per segment."""
    chosen = [metric for metric in metrics if metric.kind in KINDS]
    return [_part(names, across, [metric for metric in chosen if metric.across == across]) for across in _in_order(chosen)]


def _part(names: Sequence[str], across: str, metrics: Sequence[MetricRow]) -> Part:
    table = f"by_{across or 'none'}"
    level = across or "null"
    times = [f"{AFTER_S} as after_s"] if any(metric.kind == "slope" for metric in metrics) else []
    inner = ", ".join([*names, f"{level} as level", *times, *(item for metric in metrics for item in marks(metric))])
    per_level = ", ".join(item for metric in metrics for item in (*_of_level(metric), *sums(metric)))
    values = ", ".join(item for metric in metrics for item in _of_segment(metric))
    return Part(
        table,
        (
            f"{table}_level as (select {listed(names)}level, {per_level} from (select {inner} from rows) group by all)",
            f"{table} as (select {listed(names)}{values} from {table}_level group by all)",
        ),
        {name: text for metric in metrics for name, text in _shown(metric, table).items()},
    )


def _of_level(metric: MetricRow) -> list[str]:
    num = mark(metric, "num")
    if metric.kind == "spread":
        return [f"sum({num}) as {mark(metric, 'sum')}"]
    return [f"regr_sxy({num}, after_s) as {mark(metric, 'sxy')}", f"regr_sxx({num}, after_s) as {mark(metric, 'sxx')}"]


def _of_segment(metric: MetricRow) -> list[str]:
    if metric.kind == "spread":
        total = mark(metric, "sum")
        value = f"max({total}) / nullif(avg({total}), 0)"
    else:
        value = f"sum({mark(metric, 'sxy')}) / nullif(sum({mark(metric, 'sxx')}), 0)"
    n, known = mark(metric, "n"), mark(metric, "known")
    return [f"{value} as {mark(metric, 'value')}", f"sum({n}) as {n}", f"sum({known}) as {known}"]


def _shown(metric: MetricRow, table: str) -> dict[str, str]:
    return {metric.name: f"{table}.{mark(metric, 'value')}"} | said(metric, table)


def _in_order(metrics: Sequence[MetricRow]) -> list[str]:
    return list(dict.fromkeys(metric.across for metric in metrics))
