"""Metric definitions: each metric is one row of data, read by reports, cells, policies, pages and documents.

Arithmetic is over columns of `requests`, read alike by `arithmetic.py` as Polars and by `queries/metric_sql.py` as SQL. The rows stand by
subject in `metric_rows_*.py`; `metric_row.py` says what a row holds.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import replace

from pipeline import (
    metric_rows_cache,
    metric_rows_cost,
    metric_rows_interconnect,
    metric_rows_latency,
    metric_rows_load,
    metric_rows_outcome,
    metric_rows_speculation,
)
from pipeline.metric_row import Better, Kind, Metric
from pipeline.metric_rows_outcome import NO_SLO, Slo, slo_rows
from queries.metric_sql import virtual_columns

__all__ = [
    "CORE",
    "METRICS",
    "NO_SLO",
    "TAILS",
    "Better",
    "Kind",
    "Metric",
    "Slo",
    "UnknownMetricError",
    "by_name",
    "chosen",
    "in_cells",
    "judged",
    "of_quantile",
    "with_slo",
]

_QUANTILE = re.compile(r"_p\d+$")
CELL_KINDS: tuple[Kind, ...] = ("ratio", "mean", "share", "quantile", "product", "rate", "spread")
CORE: tuple[str, ...] = (
    "skipped_token_ratio",
    "cache_hit_rate",
    "draft_acceptance",
    "acceptance_length",
    "net_itl_s",
    "net_itl_gain",
    "interconnect_efficiency",
)
TAILS: Mapping[str, float] = {
    "ttft_s_p50": 0.5,
    "ttft_s_p95": 0.95,
    "ttft_s_p99": 0.99,
    "tpot_s_p50": 0.5,
    "tpot_s_p95": 0.95,
    "tpot_s_p99": 0.99,
    "e2e_s_p95": 0.95,
}
"""The percentiles whose arms are compared, and the share of requests that each does not exceed."""


class UnknownMetricError(KeyError):
    """A metric was asked for that no row defines."""

    def __str__(self) -> str:
        return str(self.args[0])


def by_subject(slo: Slo = NO_SLO) -> Mapping[str, tuple[Metric, ...]]:
    """Every metric under its subject's title, those of good requests by this SLO."""
    return {
        "Prefix cache": metric_rows_cache.ROWS,
        "Speculative decoding": metric_rows_speculation.ROWS,
        "Latency": metric_rows_latency.ROWS,
        "Interconnect and parallelism": metric_rows_interconnect.ROWS,
        "Load and memory": metric_rows_load.ROWS,
        "Outcome, throughput and quality": (*metric_rows_outcome.ROWS, *slo_rows(slo)),
        "Cost": metric_rows_cost.ROWS,
    }


@functools.cache
def with_slo(slo: Slo) -> tuple[Metric, ...]:
    """Every metric, those of good requests by this SLO."""
    return tuple(row for rows in by_subject(slo).values() for row in rows)


METRICS: tuple[Metric, ...] = with_slo(NO_SLO)


def of_quantile(name: str) -> str:
    """The metric of which a name such as `ttft_s_p95` is a quantile; another name as it is."""
    return _QUANTILE.sub("", name)


@functools.cache
def by_name() -> dict[str, Metric]:
    """Every metric by its name; without an SLO."""
    return {metric.name: metric for metric in METRICS}


@functools.cache
def judged() -> Mapping[str, Metric]:
    """What a policy may name: every metric by its name, and each of TAILS as a metric of its own, which is that of its requests."""
    return {**by_name(), **{name: replace(by_name()[of_quantile(name)], name=name) for name in TAILS}}


def in_cells(metric: Metric) -> bool:
    """Whether a metric's sums are kept in cells: its kind adds up, and nothing but `requests` and its own row decides on them."""
    return metric.kind in CELL_KINDS and bool(metric.numerator) and not metric.is_configured and not virtual_columns(metric)


def chosen(names: tuple[str, ...] | None, slo: Slo = NO_SLO) -> tuple[Metric, ...]:
    """The metrics of these names, in their order; None gives the core ones, `("all",)` every one.

    Raises:
        UnknownMetricError: an unknown name, with the known ones.
    """
    if names is None:
        names = CORE
    metrics = with_slo(slo)
    if names == ("all",):
        return metrics
    known = {metric.name: metric for metric in metrics}
    unknown = [name for name in names if name not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, 3, 0.5)
        meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        msg = f"metric {unknown[0]!r} is unknown; {meant}known: {', '.join(sorted(known))}"
        raise UnknownMetricError(msg)
    return tuple(known[name] for name in names)
