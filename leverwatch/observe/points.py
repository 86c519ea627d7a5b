"""Families of Prometheus in, the metrics of OTLP that say the same out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Family

UNITS = {"_seconds": "s", "_bytes": "By", "_ratio": "1"}
SUMS = ("counter", "summary")
SINCE_START = AggregationTemporality.CUMULATIVE


def metrics(families: Iterable[Family], resource: Resource, scope: InstrumentationScope, since_ns: int, now_ns: int) -> MetricsData:
    """Everything as one export; counts are since `since_ns`."""
    found = [metric for family in families for metric in _of(family, since_ns, now_ns)]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, found, "")], "")])


def _of(family: Family, since_ns: int, now_ns: int) -> Iterator[Metric]:
    """A family as metrics: one, but a summary's count and sum are two. One without samples is none."""
    if not family.samples:
        return
    unit = next((unit for end, unit in UNITS.items() if family.name.endswith(end)), "")
    if family.type == "histogram":
        yield Metric(family.name, family.documentation, unit, Histogram(_histograms(family, since_ns, now_ns), SINCE_START))
        return
    by_name: dict[str, list[NumberDataPoint]] = defaultdict(list)
    for sample in family.samples:
        if not sample.name.endswith("_created"):
            by_name[sample.name.removesuffix("_total")].append(NumberDataPoint(sample.labels, since_ns, now_ns, float(sample.value)))
    for name, points in by_name.items():
        data = Sum(points, SINCE_START, is_monotonic=True) if family.type in SUMS else Gauge(points)
        yield Metric(name, family.documentation, unit if name == family.name else "", data)


def _histograms(family: Family, since_ns: int, now_ns: int) -> list[HistogramDataPoint]:
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, int]]] = defaultdict(list)
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        own = tuple((key, value) for key, value in sample.labels.items() if key != "le")
        if sample.name.endswith("_bucket"):
            buckets[own].append((float(sample.labels["le"]), int(sample.value)))
        elif sample.name.endswith("_sum"):
            sums[own] = sample.value
    return [_histogram(dict(own), sorted(found), sums.get(own, 0.0), since_ns, now_ns) for own, found in buckets.items()]


def _histogram(labels: dict[str, str], upto: list[tuple[float, int]], sum_s: float, since_ns: int, now_ns: int) -> HistogramDataPoint:
    counts = [count - before for (_, count), before in zip(upto, [0, *(count for _, count in upto)], strict=False)]
    unknown: Any = None  # the least and the most were not kept; the encoder leaves them out
    bounds = [bound for bound, _ in upto[:-1]]
    return HistogramDataPoint(labels, since_ns, now_ns, upto[-1][1], sum_s, counts, bounds, unknown, unknown)
