"""A page of Prometheus text becomes the metrics that a Collector's receiver sends, and only what is kept of it."""

from __future__ import annotations

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from demo.scraped import CUMULATIVE, SCOPE, Scraped, export

RESOURCE = {"service.name": "vllm", "service.instance.id": "r-0"}
BEGAN_NS, AT_NS = 1_000, 2_000


def page(running: float, hits: float, *, engines: int = 1) -> str:
    lines = ["# HELP vllm:num_requests_running Running.", "# TYPE vllm:num_requests_running gauge"]
    lines += [f'vllm:num_requests_running{{engine="{engine}"}} {running}' for engine in range(engines)]
    lines += ["# HELP vllm:prefix_cache_hits_total Hits.", "# TYPE vllm:prefix_cache_hits_total counter"]
    lines += [f'vllm:prefix_cache_hits_total{{engine="0"}} {hits}']
    lines += ["# HELP vllm:prefix_cache_hits_created Hits.", "# TYPE vllm:prefix_cache_hits_created gauge"]
    lines += ['vllm:prefix_cache_hits_created{engine="0"} 1.0']
    lines += ["# HELP vllm:time_s T.", "# TYPE vllm:time_s histogram"]
    lines += ['vllm:time_s_bucket{le="1.0"} 1.0', 'vllm:time_s_bucket{le="+Inf"} 2.0', "vllm:time_s_count 2.0", "vllm:time_s_sum 3.0"]
    return "\n".join(lines) + "\n"


def sent(scraped: Scraped, text: str, at_ns: int = AT_NS) -> ExportMetricsServiceRequest:
    found, _ = scraped.read(text, at_ns)
    return ExportMetricsServiceRequest.FromString(export([found]))


def test_a_gauge_and_a_counter_come_with_resource_scope_labels_and_times() -> None:
    [resource] = sent(Scraped(RESOURCE, BEGAN_NS), page(3, 40)).resource_metrics
    assert {a.key: a.value.string_value for a in resource.resource.attributes} == RESOURCE
    [scope] = resource.scope_metrics
    assert scope.scope.name == SCOPE
    gauge, counter = scope.metrics
    assert (gauge.name, gauge.gauge.data_points[0].as_double) == ("vllm:num_requests_running", 3)
    assert (counter.name, counter.sum.is_monotonic, counter.sum.aggregation_temporality) == (
        "vllm:prefix_cache_hits_total",
        True,
        CUMULATIVE,
    )
    [point] = counter.sum.data_points
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (40, BEGAN_NS, AT_NS)
    assert {a.key: a.value.string_value for a in point.attributes} == {"engine": "0"}


def test_the_next_look_has_new_values_and_a_page_that_changed_its_lines_is_read_anew() -> None:
    scraped = Scraped(RESOURCE, BEGAN_NS)
    sent(scraped, page(3, 40))
    metrics = sent(scraped, page(4, 41), 3_000).resource_metrics[0].scope_metrics[0].metrics
    assert [metrics[0].gauge.data_points[0].as_double, metrics[1].sum.data_points[0].as_double] == [4, 41]
    assert metrics[1].sum.data_points[0].time_unix_nano == 3_000
    grown = sent(scraped, page(5, 42, engines=2)).resource_metrics[0].scope_metrics[0].metrics
    assert [[point.as_double for point in metric.gauge.data_points] for metric in grown[:1]] == [[5, 5]]


def test_the_points_that_are_sent_are_counted_and_histograms_are_not_kept() -> None:
    found, count = Scraped(RESOURCE, BEGAN_NS).read(page(3, 40, engines=3), AT_NS)
    assert count == 4
    assert {metric.name for metric in found.scope_metrics[0].metrics} == {"vllm:num_requests_running", "vllm:prefix_cache_hits_total"}
