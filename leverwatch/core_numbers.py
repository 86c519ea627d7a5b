"""A store in, the numbers that the product stands on out, per judging segment, as metric families of Prometheus.

They are of the last hour of closed blocks, read from cells and effects once a block closes or a stream is judged, and kept until then.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from alerts.chain import Policy
from alerts.effects import effect_name
from leverwatch.prometheus_labels import KEYS, bounded, of_segment
from pipeline.metrics import by_name
from queries import files
from queries.store import Store

HOUR = timedelta(hours=1)
OF_SEGMENTS = {
    "skipped_token_ratio": "leverwatch_skipped_token_ratio",
    "draft_acceptance": "leverwatch_draft_acceptance_ratio",
    "cache_hit_rate": "leverwatch_cache_hit_ratio",
    "interconnect_efficiency": "leverwatch_interconnect_efficiency_ratio",
    "tpot_s": "leverwatch_tpot_seconds",
}
"""Metrics whose value per segment is a sum over a sum in cells, and their names here; `net_itl_s` takes two arms and stands with levers."""
_PERIOD = "in the last hour of closed blocks"
_LEVER = ["policy", "lever", *KEYS]


class CoreNumbers:
    """The core numbers of one store. Safe from any thread."""

    def __init__(self, store: Store, policies: Sequence[Policy], limit_segments: int) -> None:
        self._store, self._limit_segments = store, limit_segments
        self._benefits = json.dumps({policy.name: effect_name(policy.expected_benefit.metric) for policy in policies})
        self._lock = threading.Lock()
        self._held: tuple[object, datetime | None, list[Family]] | None = None

    def families(self, now: datetime) -> list[Family]:
        """Everything: that of segments and levers as it was kept, and how long ago (seconds) the newest closed block ended."""
        with self._lock:
            version = (self._store.version("closed_blocks"), self._store.version("current_verdicts"))
            if self._held is None or self._held[0] != version:
                until = self._store.rows("select max(until) as until from closed_blocks")[0]["until"]
                self._held = version, until, list(self._asked(until)) if until else []
            _, until, found = self._held
        return [*_freshness(until, now), *found]

    def _asked(self, until: datetime) -> Iterator[Family]:
        asked = {"since": until - HOUR, "until": until, "limit_segments": self._limit_segments}
        cells = self._store.rows(files.question("scrape_cells"), {**asked, "metrics": ["requests", *OF_SEGMENTS]})
        yield from _of_segments(cells)
        yield from _of_streams(self._store.rows(files.question("scrape_streams"), {**asked, "benefits": self._benefits}))
        yield _counted(self._store.rows(files.question("scrape_stream_counts")))


def _freshness(until: datetime | None, now: datetime) -> Iterator[Family]:
    age = GaugeMetricFamily("leverwatch_newest_block_age_seconds", "Seconds since the newest closed block ended; absent where none did.")
    if until is not None:
        age.add_metric([], (now - until).total_seconds())
    yield age


def _of_segments(rows: Iterable[Mapping[str, Any]]) -> Iterator[Family]:
    held: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        held[row["shown_segment"]][row["metric"]] = row
    requests = GaugeMetricFamily("leverwatch_segment_requests", f"Requests that ended {_PERIOD}, by judging segment.", labels=KEYS)
    coverage = GaugeMetricFamily(
        "leverwatch_metric_coverage_ratio", f"Share of a segment's requests {_PERIOD} that had a metric's inputs.", labels=["metric", *KEYS]
    )
    values = {name: GaugeMetricFamily(family, _help(name), labels=KEYS) for name, family in OF_SEGMENTS.items()}
    for segment, metrics in held.items():
        labels, total = of_segment(segment), metrics["requests"]["n"] if "requests" in metrics else 0
        requests.add_metric(labels, total)
        for name, family in values.items():
            of = metrics.get(name)
            if total:
                coverage.add_metric([name, *labels], of["known"] / total if of else 0.0)
            if of and (value := _value(name, of)) is not None:
                family.add_metric(labels, value)
    yield from (requests, *values.values(), coverage)


def _value(name: str, row: Mapping[str, Any]) -> float | None:
    below = row["den"] if by_name()[name].kind == "ratio" else row["n"]
    return row["num"] / below if below else None


def _help(name: str) -> str:
    metric = by_name()[name]
    same = " Where there is no control arm, it is net inter-token latency." if name == "tpot_s" else ""
    return f"{metric.title} {_PERIOD}: {metric.formula}. Absent where unknown.{same}"


def _of_streams(rows: Sequence[Mapping[str, Any]]) -> Iterator[Family]:
    state = GaugeMetricFamily("leverwatch_lever_state", "1 for the state that a stream is in.", labels=[*_LEVER, "state"])
    verdict = GaugeMetricFamily("leverwatch_lever_verdict", "1 for what a policy says now.", labels=[*_LEVER, "verdict", "action"])
    gain = GaugeMetricFamily(
        "leverwatch_lever_gain_ratio",
        "Gain of the treated arm against control over two hours, above 0 where the lever helps; bound: value, or an end of its interval.",
        labels=[*_LEVER, "metric", "bound"],
    )
    net_itl = GaugeMetricFamily(
        "leverwatch_net_itl_seconds", "Net seconds per output token of an arm over two hours.", labels=[*_LEVER, "arm"]
    )
    requests = GaugeMetricFamily("leverwatch_lever_requests", "Requests of an arm that a gain stands on.", labels=[*_LEVER, "arm"])
    for row in rows:
        labels = [bounded(row["policy"]), row["lever"], *of_segment(row["segment"])]
        state.add_metric([*labels, row["state"]], 1)
        verdict.add_metric([*labels, row["verdict"], row["action"]], 1)
        for bound, value in (("value", row["gain"]), ("low", row["gain_low"]), ("high", row["gain_high"])):
            if row["gain"] is not None and value is not None:
                gain.add_metric([*labels, row["metric"], bound], value)
        for arm, value, n in (("treated", row["value_a"], row["n_a"]), ("control", row["value_b"], row["n_b"])):
            if row["metric"] == "net_itl_s" and value is not None:
                net_itl.add_metric([*labels, arm], value)
            if n:
                requests.add_metric([*labels, arm], n)
    yield from (state, verdict, gain, net_itl, requests)


def _counted(rows: Sequence[Mapping[str, Any]]) -> Family:
    found = GaugeMetricFamily(
        "leverwatch_streams",
        "Streams by policy, verdict and state: all, shown by themselves or not.",
        labels=["policy", "lever", "verdict", "state"],
    )
    for row in rows:
        found.add_metric([bounded(row["policy"]), row["lever"], row["verdict"], row["state"]], row["streams"])
    return found
