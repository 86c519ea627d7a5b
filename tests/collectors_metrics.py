"""Small metrics and logs exports, written with the reference protobuf package."""

from __future__ import annotations

from typing import Any

from collectors_bodies import START, attribute
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum

DELTA, CUMULATIVE = 1, 2


def point(value: float, at: int = START, **labels: str) -> NumberDataPoint:
    """One number."""
    return NumberDataPoint(time_unix_nano=at, as_double=value, attributes=[attribute(key, said) for key, said in labels.items()])


def gauge(name: str, *points: NumberDataPoint) -> Metric:
    """A gauge."""
    return Metric(name=name, gauge=Gauge(data_points=points))


def counter(name: str, *points: NumberDataPoint, temporality: int = CUMULATIVE, is_monotonic: bool = True) -> Metric:
    """A sum."""
    return Metric(name=name, sum=Sum(data_points=points, aggregation_temporality=temporality, is_monotonic=is_monotonic))


def histogram(name: str, bounds: list[float], counts: list[int], **fields: Any) -> Metric:
    """A histogram of one point."""
    chosen = {"time_unix_nano": START, "explicit_bounds": bounds, "bucket_counts": counts, "count": sum(counts), "sum": 1.5}
    made = HistogramDataPoint(**(chosen | fields))
    return Metric(name=name, histogram=Histogram(data_points=[made], aggregation_temporality=CUMULATIVE))


def metrics(*some: Metric, **resource: str) -> ExportMetricsServiceRequest:
    """One export of some metrics."""
    request = ExportMetricsServiceRequest()
    owner = request.resource_metrics.add()
    owner.resource.attributes.extend(attribute(key.replace("__", "."), value) for key, value in resource.items())
    owner.scope_metrics.add().metrics.extend(some)
    return request


def record(**fields: Any) -> LogRecord:
    """One log record; `attributes` is a dict."""
    said = fields.pop("attributes", {})
    made = LogRecord(**({"time_unix_nano": START} | fields))
    made.attributes.extend(attribute(key, value) for key, value in said.items())
    return made


def logs(*records: LogRecord, scope: str = "", **resource: str) -> ExportLogsServiceRequest:
    """One export of some log records."""
    request = ExportLogsServiceRequest()
    owner = request.resource_logs.add()
    owner.resource.attributes.extend(attribute(key.replace("__", "."), value) for key, value in resource.items())
    scoped = owner.scope_logs.add()
    scoped.scope.name = scope
    scoped.log_records.extend(records)
    return request
