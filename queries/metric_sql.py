"""Metric rows in, SQL over `requests` out. The same text of arithmetic is read by `pipeline/arithmetic.py` as Polars.

Each column is cast to double before anything is worked out: whole numbers of a sender near 2^63 would overflow and fail the statement.
"""

from __future__ import annotations

from typing import Protocol

from queries import metric_text
from queries.metric_arithmetic import arithmetic, not_null

__all__ = ["QUANTILES", "VIRTUAL_COLUMNS", "MetricRow", "arithmetic", "columns_of", "counts", "known", "read_columns", "virtual_columns"]

QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
# Columns that are not of `requests`: a report joins them where a metric reads them. The price of a GPU second comes from table `prices`.
VIRTUAL_COLUMNS = ("usd_per_gpu_s",)


class MetricRow(Protocol):
    """What is read of a metric's row; see `pipeline/metric_row.py`."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def numerator(self) -> str: ...
    @property
    def denominator(self) -> str: ...
    @property
    def times(self) -> str: ...
    @property
    def known_when(self) -> str: ...
    @property
    def across(self) -> str: ...
    @property
    def percentiles_of(self) -> str: ...
    @property
    def is_configured(self) -> bool: ...


def columns_of(metric: MetricRow) -> list[str]:
    """The columns of `requests`, and the virtual ones, that say whether a request is known and what it adds, sorted."""
    names = {metric.across} if metric.across else set()
    return sorted(names.union(*(metric_text.columns(text) for text in _texts(metric))))


def read_columns(metric: MetricRow) -> list[str]:
    """All columns that a metric's values are made of, those of its percentiles too, sorted; `columns_of` says what is known."""
    return sorted({*columns_of(metric), *(metric_text.columns(metric.percentiles_of) if metric.percentiles_of else ())})


def virtual_columns(metric: MetricRow) -> list[str]:
    """The columns that a metric reads and `requests` does not have: whoever asks joins them."""
    return [column for column in columns_of(metric) if column in VIRTUAL_COLUMNS]


def known(metric: MetricRow) -> str:
    """Whether a request has every input: no part of the arithmetic is null, where `false and null` is false. Never null itself."""
    across = [f"{metric.across} is not null"] if metric.across else []
    return " and ".join(sorted({*across, *not_null(*_texts(metric))})) or "true"


def counts(metric: MetricRow) -> str:
    """Whether a request counts: its inputs are known and `known_when` holds."""
    return f"{known(metric)} and ({arithmetic(metric.known_when)})" if metric.known_when else known(metric)


def _texts(metric: MetricRow) -> list[str]:
    """The arithmetic that makes a request known: percentiles may know fewer."""
    return [text for text in (metric.numerator, metric.denominator, metric.times, metric.known_when) if text]
