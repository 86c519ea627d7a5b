"""Our text of metrics is the client library's, to the letter."""

from __future__ import annotations

import re

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from demo.engines.exposition import Histogram, Values, labels_text, number

LABELS = {"model_name": 'a "b" \\ c', "engine": "0"}


def theirs(registry: CollectorRegistry) -> str:
    return re.sub(r"(?m)^(\S+_created(?:{.*})?) .*", r"\1 5.0", generate_latest(registry).decode())


def ours(family: Values | Histogram) -> str:
    return "".join(family.text("5.0"))


def test_counters_and_gauges_are_printed_as_the_library_prints_them() -> None:
    registry = CollectorRegistry()
    counter = prometheus_client.Counter("a:tokens", "Tokens.", [*LABELS, "source"], registry=registry)
    gauge = prometheus_client.Gauge("a:level", "A level.", list(LABELS), registry=registry)
    made, level = Values("counter", "a:tokens", "Tokens.", LABELS), Values("gauge", "a:level", "A level.", LABELS)
    for source, count in (("disk", 3), ("device", 12_345_678)):
        counter.labels(**LABELS, source=source).inc(count)
        made.set(count, source=source)
    gauge.labels(**LABELS).set(0.125)
    level.set(7)
    level.set(0.125)
    assert ours(made) + ours(level) == theirs(registry)


def test_histograms_are_printed_as_the_library_prints_them() -> None:
    registry, edges = CollectorRegistry(), (0.1, 1, 2.5, 1000000)
    histogram = prometheus_client.Histogram("a:time", "A time.", list(LABELS), registry=registry, buckets=edges)
    made = Histogram("a:time", "A time.", LABELS, edges)
    for value in (0.25, 1.0, 2.5, 2.5, 7e9):
        histogram.labels(**LABELS).observe(value)
    for value, times in ((0.25, 1), (1.0, 1), (2.5, 2), (7e9, 1)):
        made.observe(value, times)
    assert ours(made) == theirs(registry)
    assert ours(made) == ours(made)


def test_a_family_without_series_is_not_printed() -> None:
    assert ours(Values("counter", "a", "A.", {})) == ours(Histogram("b", "B.", {}, (1,))) == ""


def test_where_processes_share_a_page_the_sum_comes_first_and_nothing_says_when_it_began() -> None:
    made = Histogram("a", "A.", {}, (1,), sum_first=True)
    made.observe(0.5, stage="x")
    head = "# HELP a A.\n# TYPE a histogram\n"
    assert "".join(made.text("")) == f'{head}a_sum{{stage="x"}} 0.5\na_bucket{{le="1.0",stage="x"}} 1.0\n' + (
        'a_bucket{le="+Inf",stage="x"} 1.0\na_count{stage="x"} 1.0\n'
    )


@given(st.floats(allow_nan=False))
def test_numbers_are_printed_as_the_library_prints_them(value: float) -> None:
    value = value or 0.0  # there is no negative zero here
    registry = CollectorRegistry()
    prometheus_client.Gauge("a", "A.", registry=registry).set(value)
    assert f"a {number(value)}\n" in generate_latest(registry).decode()


@pytest.mark.parametrize("value", ["plain", 'a"b', "a\\b", "a\nb"])
def test_a_label_s_value_comes_back_as_it_was(value: str) -> None:
    [family] = text_string_to_metric_families(f"# TYPE a gauge\na{labels_text({'x': value})} 1.0\n")
    assert family.samples[0].labels == {"x": value}
