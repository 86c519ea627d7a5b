"""What the kinds of metrics have in common in a report: the marks of one request, and a part of the statement with a row per segment.

A metric is worked out from marks, columns made of each request's own: null where it does not count. Aggregates pass over nulls, and cost a
third less than aggregates with conditions of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from queries import metric_sql, provenance_digits
from queries.metric_sql import MetricRow


@dataclass(frozen=True, slots=True)
class Part:
    """Common table expressions, the last of which, `name`, has a row per segment; and what a report shows of it, by column."""

    name: str
    tables: tuple[str, ...]
    shown: Mapping[str, str] = field(default_factory=dict)


def inputs(metric: MetricRow) -> list[str]:
    """The columns whose provenance a metric has."""
    return [column for column in metric_sql.columns_of(metric) if column not in ("outcome", "replica", *metric_sql.VIRTUAL_COLUMNS)]


def words(metrics: Sequence[MetricRow]) -> list[tuple[str, list[MetricRow]]]:
    """Which metrics' provenance stands in which column of `rows`."""
    told = [metric for metric in metrics if metric.numerator and inputs(metric)]
    size = provenance_digits.METRICS_A_WORD
    return [(f'"provenance:{place // size}"', told[place : place + size]) for place in range(0, len(told), size)]


def marks(metric: MetricRow) -> list[str]:
    """Select items over `rows`: what a request adds to a metric, and whether it is known; named after the metric."""
    numerator, denominator, times, percentile, known = _names(metric)
    counted = metric_sql.counts(metric)
    items = [f"{_counted(metric.numerator, counted, metric)} as {numerator}"]
    items += [f"{_counted(metric.denominator, counted, metric)} as {denominator}"] if metric.denominator != "1" else []
    items += [f"{_counted(metric.times, counted, metric)} as {times}"] if metric.times else []
    items += (
        [f"case when {counted} then {metric_sql.arithmetic(metric.percentiles_of)} end as {percentile}"] if metric.percentiles_of else []
    )
    return [*items, *([f"case when {metric_sql.known(metric)} then 1 end as {known}"] if metric.known_when else [])]


def sums(metric: MetricRow) -> list[str]:
    """Select items over marks: how many requests count, and how many are known."""
    numerator, _, _, _, known = _names(metric)
    return [f"count({numerator}) as {_named(metric, 'n')}", f"count({known if metric.known_when else numerator}) as {known}"]


def said(metric: MetricRow, of: str) -> dict[str, str]:
    """The columns n and coverage, from the sums of a table, and provenance: of requests that have all inputs."""
    n, known = f"{of}.{_named(metric, 'n')}", f"{of}.{_named(metric, 'known')}"
    return {
        f"{metric.name}_n": n if of == "plain" else f"coalesce({n}, 0)::bigint",
        f"{metric.name}_coverage": f"{known if of == 'plain' else f'coalesce({known}, 0)'} / nullif(plain.requests, 0)",
        f"{metric.name}_provenance": f"case when {n} > 0 then plain.{_named(metric, 'said')} end",
    }


def mark(metric: MetricRow, tag: str) -> str:
    """The name of a mark or a sum: `num`, `den`, `times`, `pct`, `known`, `n`, `said`."""
    return _named(metric, tag)


def matched(names: Sequence[str], left: str, right: str) -> str:
    """The condition that rows of two tables are of one segment."""
    return " and ".join(f"{left}.{name} is not distinct from {right}.{name}" for name in names) or "true"


def listed(names: Sequence[str], of: str = "") -> str:
    """Names as the head of a select list, each with a comma behind it."""
    return "".join(f"{of}{name}, " for name in names)


def _counted(text: str, counted: str, metric: MetricRow) -> str:
    value = f"{_plain(metric_sql.arithmetic(text))}::double"
    return value if _is_bare(metric) else f"case when {counted} then {value} end"


def _plain(sql: str) -> str:
    """SQL in brackets, a column that is a double already by its name."""
    name = sql.removesuffix("::double")
    return name if name.isidentifier() else f"({sql})"


def _is_bare(metric: MetricRow) -> bool:
    """Whether a numerator is null exactly where a request does not count: it is all that is read."""
    others = metric.known_when or metric.times or metric.across or metric.denominator != "1"
    return not others and bool(metric.numerator) and bool(metric_sql.columns_of(metric))


def _named(metric: MetricRow, tag: str) -> str:
    return f'"{metric.name}:{tag}"'


def _names(metric: MetricRow) -> tuple[str, str, str, str, str]:
    num, den, times, pct, known = (_named(metric, tag) for tag in ("num", "den", "times", "pct", "known"))
    return num, den, times, pct, known
