"""A scrape in (Prometheus text or OpenMetrics), samples out, with the reason beside each line that is none."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from collectors.attributes import excess
from collectors.otlp_metrics import LIMIT_UNIX_NANO, SUMMARY, replica_of
from collectors.page_replica import OwnName, own_name
from collectors.samples import Kind, Sample, Skipped

OPEN_METRICS = "application/openmetrics-text"
LIMIT_COUNT = float(1 << 53)
NOT_A_NUMBER = Skipped("a value that is not a number")
Series = tuple[str, tuple[tuple[str, str], ...]]


class PrometheusTextError(ValueError):
    """The text is neither Prometheus text nor OpenMetrics; says what is wrong."""


class Scrape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a scrape beside its text: where it came from, who that is, and the labels that the configuration adds."""

    instance: str
    content_type: str = ""
    replica: str = ""
    replica_from: str = ""
    labels: dict[str, str] = {}


def spooled(scrape: Scrape, text: bytes) -> bytes:
    """A scrape as one body for the spool."""
    return msgspec.json.encode(scrape) + b"\n" + text


def spooled_samples(
    body: bytes, received_unix_nano: int, replica_keys: Sequence[str], own_names: Sequence[OwnName] = ()
) -> Iterator[Sample | Skipped]:
    """The samples of a spooled scrape.

    Raises:
        PrometheusTextError: the text cannot be read; nothing of it is given.
    """
    head, _, text = body.partition(b"\n")
    try:
        scrape = msgspec.json.decode(head, type=Scrape)
    except msgspec.DecodeError as error:
        msg = f"the head of a scrape: {error}"
        raise PrometheusTextError(msg) from error
    return samples(scrape, text, received_unix_nano, replica_keys, own_names)


def samples(
    scrape: Scrape, text: bytes, received_unix_nano: int, replica_keys: Sequence[str], own_names: Sequence[OwnName] = ()
) -> Iterator[Sample | Skipped]:
    """Every sample of a text, observed when it says or else when it came. `own_names` say how a page names the replica it is.

    Raises:
        PrometheusTextError: as `spooled_samples`.
    """
    metrics = _families(scrape.content_type, text)
    began = _creation_times(metrics)
    keys = [name for key in replica_keys for name in (key, key.replace(".", "_"))]
    own = own_name(metrics, own_names)
    return (
        one if isinstance(one, Skipped) else _placed(one, scrape, keys, own)
        for metric in metrics
        for one in _of_family(metric, received_unix_nano, began)
    )


def _families(content_type: str, text: bytes) -> list[Metric]:
    parse = open_metrics_families if content_type.startswith(OPEN_METRICS) else text_families
    try:
        return list(parse(text.decode()))
    except Exception as error:  # the parsers raise whatever a line makes them raise
        msg = f"not the text of metrics: {error}"
        raise PrometheusTextError(msg[:300]) from error


def _placed(sample: Sample, scrape: Scrape, keys: Sequence[str], page: tuple[str, str]) -> Sample | Skipped:
    """The sample with the configured labels, which win over its own, and with its replica. `page` is the page's own name and its label."""
    own = {f"exported_{key}" if key in scrape.labels else key: value for key, value in sample.labels.items()}
    labels = own | scrape.labels
    too_much = excess(labels)
    if too_much:
        return Skipped(too_much, is_wrong=True)
    if not 0 < sample.observed_unix_nano < LIMIT_UNIX_NANO:
        return Skipped("the time of a sample is out of range", is_wrong=True)
    replica = scrape.replica or _asked(sample, scrape, page) or replica_of(labels, keys, page[0] or scrape.instance)
    return Sample(
        sample.observed_unix_nano, replica, sample.name, labels, sample.kind, sample.value,
        sample.bounds, sample.counts, sample.total, sample.since_unix_nano,
    )  # fmt: skip


def _asked(sample: Sample, scrape: Scrape, page: tuple[str, str]) -> str:
    """What the label says that the configuration asks for, as requests say it."""
    of_page, label = page
    return of_page if of_page and scrape.replica_from == label else sample.labels.get(scrape.replica_from, "")


def _of_family(metric: Metric, received: int, began: Mapping[Series, int]) -> Iterator[Sample | Skipped]:
    if metric.type == "summary":
        yield from (SUMMARY for _ in metric.samples)
    elif metric.type == "histogram":
        yield from _histograms(metric, received, began)
    else:
        for line in metric.samples:
            if line.name.endswith("_created"):
                continue
            if not math.isfinite(line.value):
                yield NOT_A_NUMBER
                continue
            is_counter = metric.type == "counter" or (metric.type in ("unknown", "untyped") and line.name.endswith("_total"))
            kind: Kind = "counter" if is_counter else "gauge"
            since = began.get(_series(line.name.removesuffix("_total"), line.labels), 0) if is_counter else 0
            yield Sample(_time(line, received), "", line.name, line.labels, kind, line.value, since_unix_nano=since)


def _histograms(metric: Metric, received: int, began: Mapping[Series, int]) -> Iterator[Sample | Skipped]:
    lines: dict[Series, dict[str, Any]] = defaultdict(lambda: {"buckets": [], "sum": None, "count": None})
    for line in metric.samples:
        of = lines[_series(metric.name, {key: value for key, value in line.labels.items() if key != "le"})]
        of["time"] = _time(line, received)
        if line.name.endswith("_bucket"):
            of["buckets"].append((float(line.labels["le"]), line.value))
        elif line.name.endswith("_sum"):
            of["sum"] = line.value if math.isfinite(line.value) else None
        elif line.name.endswith("_count"):
            of["count"] = line.value
    for (name, labels), of in lines.items():
        made = _buckets(of["buckets"], of["count"])
        since = began.get((name, labels), 0)
        yield made if isinstance(made, Skipped) else Sample(of["time"], "", name, dict(labels), "histogram", of["sum"], *made, since)


def _buckets(buckets: list[tuple[float, float]], count: float | None) -> tuple[list[float], list[int], int] | Skipped:
    """Bounds, observations per bucket and their number, from cumulated buckets that may come in any order."""
    rising = dict(sorted(buckets))
    at_most = rising.pop(math.inf, None)
    top = at_most if at_most is not None else count
    if top is None:
        return Skipped("a histogram without a count", is_wrong=True)
    cumulated = [*rising.values(), top]
    if not all(0 <= number < LIMIT_COUNT for number in cumulated):
        return Skipped("a histogram whose counts are no whole numbers", is_wrong=True)
    counts = [int(high - low) for low, high in zip([0, *cumulated], cumulated, strict=False)]
    if any(number < 0 for number in counts):
        return Skipped("a histogram whose buckets fall", is_wrong=True)
    return list(rising), counts, int(top)


def _creation_times(metrics: Iterable[Metric]) -> dict[Series, int]:
    """When each series began to count, where its sender says so."""
    return {
        _series(line.name.removesuffix("_created").removesuffix("_total"), line.labels): int(line.value * 1e9)
        for metric in metrics
        for line in metric.samples
        if line.name.endswith("_created") and math.isfinite(line.value) and 0 < line.value < 1e10
    }


def _series(name: str, labels: Mapping[str, str]) -> Series:
    return name, tuple(sorted(labels.items()))


def _time(line: Any, received_unix_nano: int) -> int:
    return int(float(line.timestamp) * 1e9) if line.timestamp else received_unix_nano
