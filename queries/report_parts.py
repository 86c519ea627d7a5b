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


def bits_column(metric: MetricRow) -> str:
    """The column of `rows` that says where a metric's inputs come from."""
    return f'"{metric.name}:bits"'


def marks(metric: MetricRow) -> list[str]:
    """Select items over `rows`: what a request adds, whether it is known, and where its inputs come from; named after the metric."""
    numerator, denominator, times, percentile, known, bits = _names(metric)
    counted = metric_sql.counts(metric)
    items = [f"{_counted(metric.numerator, counted, metric)} as {numerator}"]
    items += [f"{_counted(metric.denominator, counted, metric)} as {denominator}"] if metric.denominator != "1" else []
    items += [f"{_counted(metric.times, counted, metric)} as {times}"] if metric.times else []
    items += (
        [f"case when {counted} then {metric_sql.arithmetic(metric.percentiles_of)} end as {percentile}"] if metric.percentiles_of else []
    )
    items += [f"case when {metric_sql.known(metric)} then 1 end as {known}"] if metric.known_when else []
    said = bits_column(metric)
    return [*items, f"{said} as {bits}" if _is_bare(metric) and inputs(metric) else f"case when {counted} then {said} end as {bits}"]


def sums(metric: MetricRow) -> list[str]:
    """Select items over marks: the additive parts every kind has, `:n`, `:known`, `:bits`."""
    numerator, _, _, _, known, bits = _names(metric)
    return [
        f"count({numerator}) as {_named(metric, 'n')}",
        f"count({known if metric.known_when else numerator}) as {known}",
        f"bit_or({bits}) as {bits}",
    ]


def said(metric: MetricRow, of: str, requests: str = "plain.requests") -> dict[str, str]:
    """The columns n, coverage and provenance, from the sums of a table."""
    return {
        f"{metric.name}_n": f"coalesce({of}.{_named(metric, 'n')}, 0)::bigint",
        f"{metric.name}_coverage": f"coalesce({of}.{_named(metric, 'known')}, 0) / nullif({requests}, 0)",
        f"{metric.name}_provenance": provenance_digits.words(f"{of}.{_named(metric, 'bits')}"),
    }


def mark(metric: MetricRow, tag: str) -> str:
    """The name of a mark or a sum: `num`, `den`, `times`, `pct`, `known`, `bits`, `n`."""
    return _named(metric, tag)


def matched(names: Sequence[str], left: str, right: str) -> str:
    """The condition that rows of two tables are of one segment."""
    return " and ".join(f"{left}.{name} is not distinct from {right}.{name}" for name in names) or "true"


def listed(names: Sequence[str], of: str = "") -> str:
    """Names as the head of a select list, each with a comma behind it."""
    return "".join(f"{of}{name}, " for name in names)


def _counted(text: str, counted: str, metric: MetricRow) -> str:
    value = f"({metric_sql.arithmetic(text)})::double"
    return value if _is_bare(metric) else f"case when {counted} then {value} end"


def _is_bare(metric: MetricRow) -> bool:
    """Whether a numerator is null exactly where a request does not count: it is all that is read."""
    others = metric.known_when or metric.times or metric.across or metric.denominator != "1"
    return not others and bool(metric.numerator) and bool(metric_sql.columns_of(metric))


def _named(metric: MetricRow, tag: str) -> str:
    return f'"{metric.name}:{tag}"'


def _names(metric: MetricRow) -> tuple[str, str, str, str, str, str]:
    num, den, times, pct, known, bits = (_named(metric, tag) for tag in ("num", "den", "times", "pct", "known", "bits"))
    return num, den, times, pct, known, bits
