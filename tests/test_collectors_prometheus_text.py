"""Prometheus text and OpenMetrics become samples: histograms whole, no creation time as a gauge, no summary, no NaN."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.prometheus_text import PrometheusTextError, Scrape, samples, spooled, spooled_samples
from collectors.samples import Sample, Skipped

NOW = 1_700_000_000_000_000_000
KEYS = ("leverwatch.replica", "service.instance.id")
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
HISTOGRAM = """# TYPE h histogram
h_bucket{engine="0",le="1.0"} 2
h_bucket{engine="0",le="0.1"} 1
h_bucket{engine="0",le="+Inf"} 5
h_sum{engine="0"} 7.5
h_count{engine="0"} 5
h_bucket{engine="1",le="+Inf"} 0
h_sum{engine="1"} 0
h_count{engine="1"} 0
"""


def read(text: str, **scrape: object) -> list[Sample | Skipped]:
    return list(samples(Scrape(**({"instance": "10.0.0.5:8000"} | scrape)), text.encode(), NOW, KEYS))


def found(text: str, **scrape: object) -> list[Sample]:
    kept = read(text, **scrape)
    assert all(isinstance(one, Sample) for one in kept), kept
    return [one for one in kept if isinstance(one, Sample)]


def test_gauges_counters_and_what_has_no_type_are_told_apart() -> None:
    text = "# TYPE g gauge\ng 0.5\n# TYPE c_total counter\nc_total 3\nplain 7\nplain_total 8\n"
    assert [(one.name, one.kind, one.value, one.observed_unix_nano) for one in found(text)] == [
        ("g", "gauge", 0.5, NOW),
        ("c_total", "counter", 3.0, NOW),
        ("plain", "gauge", 7.0, NOW),
        ("plain_total", "counter", 8.0, NOW),
    ]


def test_a_histogram_is_one_sample_a_series_whatever_the_order_of_its_buckets() -> None:
    first, second = found(HISTOGRAM)
    assert (first.name, first.labels, first.kind) == ("h", {"engine": "0"}, "histogram")
    assert (first.bounds, first.counts, first.value, first.total) == ([0.1, 1.0], [1, 1, 3], 7.5, 5)
    assert (second.labels, second.bounds, second.counts, second.total) == ({"engine": "1"}, [], [0], 0)


def test_a_creation_time_says_since_when_a_series_counts_and_is_no_gauge() -> None:
    text = "# TYPE c_total counter\nc_total 3\n# TYPE c_created gauge\nc_created 1.6e+09\n"
    text += HISTOGRAM + '# TYPE h_created gauge\nh_created{engine="0"} 1.5e+09\n'
    assert [(one.name, one.since_unix_nano) for one in found(text)] == [
        ("c_total", 1_600_000_000 * 10**9),
        ("h", 1_500_000_000 * 10**9),
        ("h", 0),
    ]


def test_open_metrics_is_read_by_its_content_type() -> None:
    text = "# TYPE c counter\nc_total 3 1600000000.5\nc_created 1500000000 1600000000.5\n# EOF\n"
    one = found(text, content_type=OPEN_METRICS)[0]
    assert (one.name, one.value, one.observed_unix_nano, one.since_unix_nano) == ("c_total", 3.0, 1_600_000_000_500_000_000, 15 * 10**17)


def test_a_summary_and_a_value_that_is_no_number_are_left_out_with_why() -> None:
    kept = read('# TYPE s summary\ns{quantile="0.5"} 1\ns_sum 2\ns_count 3\n# TYPE g gauge\ng NaN\ng{a="b"} +Inf\n')
    assert [(one.reason, one.is_wrong) for one in kept if isinstance(one, Skipped)] == [
        *[("a summary: quantiles can be neither added nor merged", False)] * 3,
        *[("a value that is not a number", False)] * 2,
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('# TYPE h histogram\nh_bucket{le="1"} 3\nh_bucket{le="+Inf"} 2\n', "a histogram whose buckets fall"),
        ('# TYPE h histogram\nh_bucket{le="1"} 3\nh_sum 2\n', "a histogram without a count"),
        ('# TYPE h histogram\nh_bucket{le="+Inf"} 1e300\n', "a histogram whose counts are no whole numbers"),
        ("g 1 1e300\n", "the time of a sample is out of range"),
    ],
)
def test_a_histogram_that_cannot_be_is_wrong(text: str, reason: str) -> None:
    assert read(text) == [Skipped(reason, is_wrong=True)]


@pytest.mark.parametrize(
    ("scrape", "labels", "replica"),
    [
        ({}, "", "10.0.0.5:8000"),
        ({}, '{leverwatch_replica="r"}', "r"),
        ({"replica": "fixed"}, '{leverwatch_replica="r"}', "fixed"),
        ({"replica_from": "Hostname"}, '{Hostname="node-1"}', "node-1"),
        ({"replica_from": "Hostname"}, "", "10.0.0.5:8000"),
        ({"labels": {"leverwatch.replica": "r"}}, "", "r"),
    ],
)
def test_the_replica_is_fixed_or_of_a_label_or_the_target(scrape: dict[str, object], labels: str, replica: str) -> None:
    assert found(f"g{labels} 1\n", **scrape)[0].replica == replica


def test_configured_labels_win_and_the_targets_own_are_kept_beside() -> None:
    assert found('g{job="theirs",a="b"} 1\n', labels={"job": "ours"})[0].labels == {"exported_job": "theirs", "a": "b", "job": "ours"}


@pytest.mark.parametrize("text", ["g{ 1\n", "g one\n", 'h_bucket{le="x"}', "\x00\x01", "<html></html>"])
def test_a_text_that_is_none_is_refused_whole(text: str) -> None:
    with pytest.raises(PrometheusTextError, match="not the text of metrics"):
        list(samples(Scrape("h:1"), ("good 1\n" + text).encode(), NOW, KEYS))


def test_a_spooled_scrape_comes_back_and_a_broken_head_is_refused() -> None:
    body = spooled(Scrape("h:1", labels={"a": "b"}), b"g 1\n")
    assert [one.labels for one in spooled_samples(body, NOW, KEYS) if isinstance(one, Sample)] == [{"a": "b"}]
    with pytest.raises(PrometheusTextError, match="the head of a scrape"):
        spooled_samples(b"{}\ng 1\n", NOW, KEYS)


def test_every_recorded_text_is_read_without_anything_wrong(recordings: Path) -> None:
    texts = sorted(recordings.glob("*/metrics-*.prom"))
    for path in texts:
        kept = list(samples(Scrape("h:1"), path.read_bytes(), NOW, KEYS))
        assert [one for one in kept if isinstance(one, Skipped) and one.is_wrong] == []
        assert sum(isinstance(one, Sample) for one in kept) > 20
    assert len(texts) > 10
