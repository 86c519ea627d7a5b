"""An opened data folder in, what it and its child processes hold and cost out, as families of Prometheus."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.process_collector import ProcessCollector

from leverwatch.engine_room import EngineRoom
from leverwatch.observe.counts import levels
from leverwatch.observe.observer import Observer
from leverwatch.prometheus_labels import bounded
from leverwatch.version import __version__

WEIGHED_S = 60.0  # between two looks at what the folder holds: the parts may be thousands
DATABASE = ("live.duckdb", "live.duckdb.wal")


@dataclass(slots=True)
class HouseNumbers:
    """What one data folder holds, and what became of statements and drawings."""

    room: EngineRoom
    _weighed: dict[tuple[str, ...], float] = field(default_factory=dict)
    _next_s: float = float("-inf")

    def families(self) -> Iterator[Family]:
        """All of them."""
        if time.monotonic() >= self._next_s:
            self._weighed, self._next_s = self._bytes(), time.monotonic() + WEIGHED_S
        says = "Bytes of the data folder: `database` is the file; of relations their parts, and their estimated share of the file."
        yield levels("leverwatch_folder_bytes", says, ("what",), self._weighed.items())
        least = float(self.room.config.retention.min_free_bytes)
        yield levels("leverwatch_disk_min_free_bytes", "Free bytes below which exports are refused; 0 is no bound.", (), [((), least)])
        limit = float(self.room.config.store.limit_backlog_bytes)
        yield levels("leverwatch_spool_limit_bytes", "Bytes that may wait to be loaded before exports are refused.", (), [((), limit)])
        says = "Statements of ad-hoc SQL: answered, or why not; time_limit, memory_limit and crashed ended a child process."
        statements = CounterMetricFamily("leverwatch_sql_statements", says, labels=["outcome"])
        for code, count in sorted(self.room.sandbox.outcomes.copy().items()):
            statements.add_metric([code], count)
        says = "Drawings that came to nothing: the process that draws was killed (time_limit), died (crashed) or did not start."
        drawings = CounterMetricFamily("leverwatch_drawing_failures", says, labels=["reason"])
        total = sum((easel.failures.copy() for easel in self.room.studio.easels), Counter[str]())
        for reason in ("crashed", "not_drawn", "not_started", "time_limit"):
            drawings.add_metric([reason], total[reason])
        yield from (statements, drawings)

    def _bytes(self) -> dict[tuple[str, ...], float]:
        held: dict[tuple[str, ...], float] = {(f"{row['relation']}",): float(row["bytes"] or 0) for row in self.room.house.holdings()}
        files = (self.room.folder / name for name in DATABASE)
        return held | {("database",): float(sum(file.stat().st_size for file in files if file.exists()))}


def warning_family(warnings: Mapping[str, str]) -> Family:
    """The warnings of `/readyz`, by where they are."""
    says = "1 for each warning of /readyz, which has its words: registry, switchback, parts, lake, kafka, or a scrape target."
    return levels("leverwatch_warning", says, ("of",), (((bounded(name),), 1.0) for name in warnings))


def process_families(kind: str, observer: Observer) -> Iterator[Family]:
    """What runs, how long already, what became of what it tells of itself, and what the system says of the process."""
    build = InfoMetricFamily("leverwatch_build", "The version, and which process this is: serve, collect or work.")
    build.add_metric([], {"version": __version__, "process": kind})
    yield build
    up = GaugeMetricFamily("leverwatch_uptime_seconds", "Seconds since the process started.", value=time.monotonic() - _STARTED_S)
    says = "Sendings of own spans and metrics that failed; what was in them is lost."
    lost = CounterMetricFamily("leverwatch_observe_failed_sendings", says, labels=["signal"])
    for signal, count in sorted(observer.tracing.failed_sendings.items()):
        lost.add_metric([signal], count)
    yield from (up, lost)
    yield from _OF_PROCESS.collect()


_STARTED_S = time.monotonic()
_OF_PROCESS = ProcessCollector(registry=None)
