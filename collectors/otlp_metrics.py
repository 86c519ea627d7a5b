"""An OTLP metrics export in, samples out, with the reason beside each point that is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    DataPointFlags,
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
)

from collectors.attributes import excess, texts
from collectors.samples import DELTA, Kind, Sample, Skipped

LIMIT_UNIX_NANO = LIMIT_COUNT = 1 << 63
LIMIT_BUCKETS = 10_000
UNTOLD = ("telemetry.", "process.", "os.")  # resource attributes that are the same in every sample and say nothing about an engine
NO_VALUE = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
IS_DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
SUMMARY = Skipped("a summary: quantiles can be neither added nor merged")


def points(request: ExportMetricsServiceRequest, replica_keys: Sequence[str], sender: str) -> Iterator[Sample | Skipped]:
    """Every data point of an export in order. The replica is the first of `replica_keys` that the point or its resource names."""
    for resource in request.resource_metrics:
        facts = texts(resource.resource.attributes)
        shared = {key: value for key, value in facts.items() if not key.startswith(UNTOLD)}
        for scope in resource.scope_metrics:
            named = {"otel.scope.name": scope.scope.name} if scope.scope.name else {}
            for metric in scope.metrics:
                yield from _of_metric(metric, shared | named, replica_keys, sender)


def replica_of(labels: Mapping[str, str], keys: Sequence[str], otherwise: str) -> str:
    """The replica that labels name, else `otherwise`."""
    return next((labels[key] for key in keys if labels.get(key)), otherwise)


def _of_metric(metric: Metric, shared: dict[str, str], replica_keys: Sequence[str], sender: str) -> Iterator[Sample | Skipped]:
    form = metric.WhichOneof("data")
    if form is None:
        return
    data: Any = getattr(metric, form)
    marks = DELTA if form not in ("gauge", "summary") and data.aggregation_temporality == IS_DELTA else {}
    for point in data.data_points:
        labels = shared | texts(point.attributes) | marks
        wrong = _why_not(metric, form, point, labels)
        if wrong is not None:
            yield wrong
            continue
        replica = replica_of(labels, replica_keys, sender)
        yield _sample(metric, form, data, point, labels, replica)


def _why_not(metric: Metric, form: str, point: Any, labels: dict[str, str]) -> Skipped | None:
    if form == "summary":
        return SUMMARY
    if not metric.name:
        return Skipped("a metric without a name", is_wrong=True)
    if not 0 < point.time_unix_nano < LIMIT_UNIX_NANO or point.start_time_unix_nano >= LIMIT_UNIX_NANO:
        return Skipped("the time of a data point is missing or out of range", is_wrong=True)
    too_much = excess(labels)
    if too_much:
        return Skipped(too_much, is_wrong=True)
    return Skipped("a data point without a recorded value") if point.flags & NO_VALUE else None


def _sample(metric: Metric, form: str, data: Any, point: Any, labels: dict[str, str], replica: str) -> Sample | Skipped:
    since = point.start_time_unix_nano if form != "gauge" else 0
    if form in ("gauge", "sum"):
        member = point.WhichOneof("value")
        value = float(getattr(point, member)) if member else math.nan
        if not math.isfinite(value):
            return Skipped("a value that is not a number")
        # A delta of a sum that may fall is still an increment, never a level.
        kind: Kind = "counter" if form == "sum" and (data.is_monotonic or data.aggregation_temporality == IS_DELTA) else "gauge"
        return Sample(point.time_unix_nano, replica, metric.name, labels, kind, value, since_unix_nano=since)
    made = _explicit(point) if form == "histogram" else _exponential(point)
    if isinstance(made, Skipped):
        return made
    value_sum = point.sum if point.HasField("sum") and math.isfinite(point.sum) else None
    return Sample(point.time_unix_nano, replica, metric.name, labels, "histogram", value_sum, *made, point.count, since)


def _explicit(point: HistogramDataPoint) -> tuple[list[float], list[int]] | Skipped:
    bounds, counts = list(point.explicit_bounds), list(point.bucket_counts)
    if not bounds and not counts and point.count < LIMIT_COUNT:
        return [], [point.count]
    if len(counts) != len(bounds) + 1 or sum(counts) != point.count or point.count >= LIMIT_COUNT:
        return Skipped("a histogram whose buckets do not fit its bounds or its count", is_wrong=True)
    if not all(low < high for low, high in pairwise(bounds)) or not all(map(math.isfinite, bounds)):
        return Skipped("a histogram whose bounds do not rise", is_wrong=True)
    return bounds, counts


def _exponential(point: ExponentialHistogramDataPoint) -> tuple[list[float], list[int]] | Skipped:
    """Bucket i covers base^i (exclusive) to base^(i+1), base = 2^(2^-scale); those of negative values are mirrored, zero lies between."""
    below, above = point.negative, point.positive
    if len(below.bucket_counts) + len(above.bucket_counts) > LIMIT_BUCKETS:
        return Skipped(f"an exponential histogram of more than {LIMIT_BUCKETS} buckets", is_wrong=True)
    if sum(below.bucket_counts) + point.zero_count + sum(above.bucket_counts) != point.count or point.count >= LIMIT_COUNT:
        return Skipped("a histogram whose buckets do not fit its bounds or its count", is_wrong=True)
    try:
        edge = [_edge(point.scale, above.offset + index) for index in range(len(above.bucket_counts) + 1)] if above.bucket_counts else []
        under = [-_edge(point.scale, below.offset + index) for index in range(len(below.bucket_counts) + 1)] if below.bucket_counts else []
    except OverflowError:
        return Skipped("an exponential histogram beyond the range of numbers", is_wrong=True)
    bounds = [*under[::-1], *(edge or [point.zero_threshold])]
    # One bucket beneath the lowest bound and one above the highest hold nothing; zeros lie between the two sides.
    counts = [*([0, *reversed(below.bucket_counts)] if under else []), point.zero_count, *above.bucket_counts, 0]
    if not all(low < high for low, high in pairwise(bounds)):
        return Skipped("a histogram whose bounds do not rise", is_wrong=True)
    return bounds, counts


def _edge(scale: int, index: int) -> float:
    if not -11 <= scale <= 20:
        msg = f"scale {scale}"
        raise OverflowError(msg)
    return math.exp2(index * 2.0**-scale)
