"""Prometheus text of a replica in, OTLP metrics out, as an OpenTelemetry Collector's Prometheus receiver sends them.

The receiver's configuration keeps what tells of load, of the cache and of drafts, and drops the rest, histograms above all: a page has
hundreds of series, and spans say most of it of each request.
A replica prints the same lines in the same order from one look to the next: what was read of them once is kept, and only values are new.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, NumberDataPoint, ResourceMetrics
from prometheus_client.parser import text_string_to_metric_families

SCOPE = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
KEPT = re.compile(
    r"[a-z]+[:_](num_requests_(running|waiting)|num_(running|queue)_reqs|kv_cache_usage_perc|kv_cache_utilization|token_usage"
    r"|cache_config_info|num_preemptions_total|num_retracted_requests_total|evicted_tokens_total|(prompt|generation|cached)_tokens_total"
    r"|prompt_cached_tokens_total|prefix_cache_(queries|hits)_total|spec_decode_num_(drafts|draft_tokens|accepted_tokens)_total"
    r"|spec_verify_calls_total|num_prefill_(bootstrap|inflight)_queue_reqs|num_decode_(prealloc|transfer)_queue_reqs"
    r"|kvstats_gpu_cache_usage_percent)"
)
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


class Scraped:
    """One replica's page, read again and again."""

    def __init__(self, resource: Mapping[str, str], began_ns: int) -> None:
        self._resource, self._began_ns = dict(resource), began_ns
        self._heads: list[str] = []
        self._points: list[NumberDataPoint | None] = []
        self._metrics = ResourceMetrics()

    def read(self, text: str, at_ns: int) -> tuple[ResourceMetrics, int]:
        """What the page said at a moment, and how many points that are. It is the same object each time."""
        lines = text.splitlines()
        if not self._same(lines):
            self._learn(text, lines)
        count = 0
        for line, head, point in zip(lines, self._heads, self._points, strict=True):
            if point is not None:
                point.as_double = float(line[len(head) :])
                point.time_unix_nano = at_ns
                count += 1
        return self._metrics, count

    def _same(self, lines: list[str]) -> bool:
        return len(lines) == len(self._heads) and all(map(str.startswith, lines, self._heads))

    def _learn(self, text: str, lines: list[str]) -> None:
        self._metrics = ResourceMetrics()
        for key, value in self._resource.items():
            self._metrics.resource.attributes.add(key=key).value.string_value = value
        scope = self._metrics.scope_metrics.add()
        scope.scope.name = SCOPE
        points: list[NumberDataPoint | None] = []
        metrics: dict[str, Metric] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not KEPT.fullmatch(sample.name):
                    points.append(None)
                    continue
                if sample.name not in metrics:
                    metrics[sample.name] = scope.metrics.add(name=sample.name, description=family.documentation)
                points.append(self._point(metrics[sample.name], sample.labels, is_counter=family.type == "counter"))
        said = iter(points)
        self._heads = [line if line.startswith("#") else line[: line.rindex(" ") + 1] for line in lines]
        self._points = [None if line.startswith("#") or not line else next(said) for line in lines]

    def _point(self, metric: Metric, labels: Mapping[str, str], *, is_counter: bool) -> NumberDataPoint:
        point: NumberDataPoint
        if is_counter:
            metric.sum.aggregation_temporality, metric.sum.is_monotonic = CUMULATIVE, True
            point = metric.sum.data_points.add(start_time_unix_nano=self._began_ns)
        else:
            point = metric.gauge.data_points.add()
        for key, value in labels.items():
            point.attributes.add(key=key).value.string_value = value
        return point


def export(pages: list[ResourceMetrics]) -> bytes:
    """The bytes of an `ExportMetricsServiceRequest` of several replicas."""
    body: bytes = ExportMetricsServiceRequest(resource_metrics=pages).SerializeToString()
    return body
