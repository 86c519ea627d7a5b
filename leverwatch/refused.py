"""Refused calls in, counts by port and reason out: for `/metrics`, and one line in the log for each caller."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric as Family

MOST_CALLERS = 1000  # a caller that changes its address must not fill the memory

log = logging.getLogger("leverwatch")


class Refused:
    """How often calls were refused. Safe from any thread."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._callers: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()

    def note(self, port: str, code: str, caller: str, hint: str = "") -> None:
        """Counts one; the first of a caller is said in the log, with the hint."""
        with self._lock:
            self._counts[port, code] += 1
            is_new = (port, code, caller) not in self._callers and len(self._callers) < MOST_CALLERS
            if is_new:
                self._callers.add((port, code, caller))
        if is_new:
            log.warning("%s: calls to %s are refused: %s%s", caller, port, code, f"; {hint}" if hint else "")

    def family(self) -> Family:
        """The counts as a family of Prometheus."""
        with self._lock:
            found = sorted(self._counts.items())
        family = CounterMetricFamily("leverwatch_refused_calls", "Calls that were refused, by port and reason.", labels=["port", "reason"])
        for labels, count in found:
            family.add_metric(labels, count)
        return family
