"""Every form of an OTLP metric becomes the samples it says, or a reason; nothing is read as what it is not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from collectors_bodies import START, attribute
from collectors_metrics import CUMULATIVE, DELTA, counter, gauge, histogram, metrics, point
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    DataPointFlags,
    ExponentialHistogram,
    ExponentialHistogramDataPoint,
    Metric,
    NumberDataPoint,
    Summary,
    SummaryDataPoint,
)

from collectors.attributes import LIMIT_LABEL_CHARACTERS, LIMIT_LABELS
from collectors.otlp_metrics import points
from collectors.samples import Sample, Skipped

KEYS = ("leverwatch.replica", "service.instance.id", "k8s.pod.name", "host.name")
Buckets = ExponentialHistogramDataPoint.Buckets


def said(*some: Metric, **resource: str) -> list[Sample | Skipped]:
    return list(points(metrics(*some, **resource), KEYS, "10.0.0.7"))


def only(*some: Metric, **resource: str) -> Sample:
    found = said(*some, **resource)
    assert len(found) == 1
    assert isinstance(found[0], Sample), found
    return found[0]


def exponential(**fields: Any) -> Metric:
    chosen = {"time_unix_nano": START, "sum": 9.0}
    made = ExponentialHistogramDataPoint(**(chosen | fields))
    return Metric(name="h", exponential_histogram=ExponentialHistogram(data_points=[made], aggregation_temporality=CUMULATIVE))


def test_a_gauge_keeps_its_name_its_labels_and_those_of_its_resource() -> None:
    found = only(
        gauge("vllm:kv_cache_usage_perc", point(0.5, engine="0")), service__name="vllm", process__pid="7", telemetry__sdk__name="x"
    )
    assert found == Sample(START, "10.0.0.7", "vllm:kv_cache_usage_perc", {"service.name": "vllm", "engine": "0"}, "gauge", 0.5)


@pytest.mark.parametrize(
    ("resource", "label", "replica"),
    [
        ({}, {}, "10.0.0.7"),
        ({"host__name": "h"}, {}, "h"),
        ({"host__name": "h", "k8s__pod__name": "p"}, {}, "p"),
        ({"service__instance__id": "i", "k8s__pod__name": "p"}, {}, "i"),
        ({"service__instance__id": "i", "leverwatch__replica": "r"}, {}, "r"),
        ({"service__instance__id": "i"}, {"leverwatch.replica": "of the point"}, "of the point"),
    ],
)
def test_the_replica_is_the_first_that_names_one(resource: dict[str, str], label: dict[str, str], replica: str) -> None:
    assert only(gauge("g", point(1.0, **label)), **resource).replica == replica


@pytest.mark.parametrize(
    ("is_monotonic", "temporality", "kind", "label"),
    [
        (True, CUMULATIVE, "counter", None),
        (False, CUMULATIVE, "gauge", None),
        (True, DELTA, "counter", "delta"),
        (False, DELTA, "counter", "delta"),
    ],
)
def test_a_sum_is_a_level_only_when_it_may_fall_and_is_whole(is_monotonic: bool, temporality: int, kind: str, label: str | None) -> None:
    found = only(counter("c", point(3.0), is_monotonic=is_monotonic, temporality=temporality))
    assert (found.kind, found.labels.get("leverwatch.temporality")) == (kind, label)


def test_a_counter_says_since_when_it_counts_and_whole_numbers_are_taken() -> None:
    whole = NumberDataPoint(time_unix_nano=START, start_time_unix_nano=START - 5, as_int=7)
    found = only(counter("c", whole))
    assert (found.value, found.since_unix_nano) == (7.0, START - 5)


def test_a_histogram_keeps_bounds_counts_sum_and_number() -> None:
    found = only(histogram("h", [0.1, 1.0], [3, 2, 1], start_time_unix_nano=START - 9))
    assert (found.kind, found.value, found.bounds, found.counts, found.total) == ("histogram", 1.5, [0.1, 1.0], [3, 2, 1], 6)
    assert found.since_unix_nano == START - 9


def test_a_histogram_without_buckets_is_a_sum_and_a_number() -> None:
    found = only(histogram("h", [], [], count=4))
    assert (found.bounds, found.counts, found.total, found.value) == ([], [4], 4, 1.5)


def test_an_exponential_histogram_has_the_bounds_that_its_scale_says() -> None:
    made = exponential(scale=0, zero_count=2, positive=Buckets(offset=1, bucket_counts=[3, 4]), count=9)
    found = only(made)
    assert (found.bounds, found.counts, found.total) == ([2.0, 4.0, 8.0], [2, 3, 4, 0], 9)


def test_negative_values_of_an_exponential_histogram_are_mirrored() -> None:
    negative, positive = Buckets(offset=0, bucket_counts=[1, 2]), Buckets(offset=-1, bucket_counts=[5])
    found = only(exponential(scale=0, zero_count=4, negative=negative, positive=positive, count=12))
    assert (found.bounds, found.counts) == ([-4.0, -2.0, -1.0, 0.5, 1.0], [0, 2, 1, 4, 5, 0])


@pytest.mark.parametrize("scale", [-2, 3, 20])
def test_each_bound_of_an_exponential_histogram_is_the_next_power_of_its_base(scale: int) -> None:
    found = only(exponential(scale=scale, positive=Buckets(offset=-3, bucket_counts=[1] * 6), count=6))
    base = 2.0 ** (2.0**-scale)
    assert found.bounds is not None
    assert [math.isclose(bound, base**power) for power, bound in enumerate(found.bounds, -3)] == [True] * 7


def test_an_exponential_histogram_of_zeros_has_one_bound() -> None:
    found = only(exponential(scale=5, zero_count=3, zero_threshold=1e-9, count=3))
    assert (found.bounds, found.counts) == ([1e-9], [3, 0])


@pytest.mark.parametrize(
    ("metric", "reason", "is_wrong"),
    [
        (Metric(name="s", summary=Summary(data_points=[SummaryDataPoint(time_unix_nano=START)])), "a summary: quantiles", False),
        (gauge("g", point(math.nan)), "a value that is not a number", False),
        (gauge("g", point(math.inf)), "a value that is not a number", False),
        (gauge("g", NumberDataPoint(time_unix_nano=START)), "a value that is not a number", False),
        (
            gauge("g", NumberDataPoint(time_unix_nano=START, flags=DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)),
            "a data point without a recorded value",
            False,
        ),
        (gauge("g", point(1.0, at=0)), "the time of a data point is missing", True),
        (gauge("g", point(1.0, at=1 << 63)), "the time of a data point is missing", True),
        (gauge("", point(1.0)), "a metric without a name", True),
        (gauge("g", point(1.0, long="x" * LIMIT_LABEL_CHARACTERS)), f"a label is longer than {LIMIT_LABEL_CHARACTERS}", True),
        (gauge("g", point(1.0, **{f"k{n}": "v" for n in range(LIMIT_LABELS + 1)})), f"more than {LIMIT_LABELS} labels", True),
        (histogram("h", [1.0], [1]), "buckets do not fit its bounds", True),
        (histogram("h", [1.0], [1, 1], count=3), "buckets do not fit its bounds", True),
        (histogram("h", [2.0, 1.0], [1, 1, 1]), "bounds do not rise", True),
        (histogram("h", [1.0, math.nan], [1, 1, 1]), "bounds do not rise", True),
        (exponential(scale=-11, positive=Buckets(offset=5, bucket_counts=[1]), count=1), "beyond the range of numbers", True),
        (exponential(scale=30, positive=Buckets(offset=0, bucket_counts=[1]), count=1), "beyond the range of numbers", True),
        (exponential(scale=0, positive=Buckets(offset=0, bucket_counts=[1] * 10_001), count=10_001), "more than 10000 buckets", True),
        (exponential(scale=0, positive=Buckets(offset=-2_000, bucket_counts=[1, 1]), count=2), "bounds do not rise", True),
    ],
)
def test_what_is_no_sample_is_said_with_why_and_keeps_no_other_out(metric: Metric, reason: str, is_wrong: bool) -> None:
    first, second = said(metric, gauge("sound", point(1.0)))
    assert isinstance(first, Skipped)
    assert (reason in first.reason, first.is_wrong) == (True, is_wrong)
    assert isinstance(second, Sample)


def test_labels_that_are_no_text_become_text() -> None:
    made = point(1.0)
    made.attributes.extend([attribute("whole", 3), attribute("real", 0.5)])
    nested = made.attributes.add(key="list")
    nested.value.array_value.values.add(string_value="a")
    nested.value.array_value.values.add(bool_value=True)
    made.attributes.add(key="empty")
    assert only(gauge("g", made)).labels == {"whole": "3", "real": "0.5", "list": '["a", true]'}


def test_a_sum_of_a_histogram_that_was_not_sent_is_missing() -> None:
    metric = histogram("h", [1.0], [1, 1])
    metric.histogram.data_points[0].ClearField("sum")
    assert only(metric).value is None
