"""What happened in, families of Prometheus out: counts, durations and levels under labels. Safe from any thread."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

Labels = tuple[str, ...]
SOON_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Counts:
    """How much there was, by labels."""

    def __init__(self, name: str, says: str, labels: Sequence[str]) -> None:
        self._name, self._says, self._labels = name, says, labels
        self._counts: Counter[Labels] = Counter()
        self._lock = threading.Lock()

    def add(self, *labels: str, n: float = 1) -> None:
        """Counts."""
        with self._lock:
            self._counts[labels] += n  # type: ignore[assignment]  # a Counter holds any number

    def of(self, *labels: str) -> float:
        """What was counted under labels."""
        return self._counts[labels]

    def family(self) -> Family:
        """All of it."""
        with self._lock:
            found = sorted(self._counts.items())
        family = CounterMetricFamily(self._name, self._says, labels=self._labels)
        for labels, count in found:
            family.add_metric(labels, count)
        return family


class Durations:
    """How long things took, in seconds, by labels: a histogram."""

    def __init__(self, name: str, says: str, labels: Sequence[str], bounds_s: Sequence[float] = SOON_S) -> None:
        self._name, self._says, self._labels, self._bounds_s = name, says, labels, bounds_s
        self._counts: defaultdict[Labels, list[int]] = defaultdict(lambda: [0] * (len(bounds_s) + 1))
        self._sums_s: Counter[Labels] = Counter()
        self._lock = threading.Lock()

    def add(self, elapsed_s: float, *labels: str) -> None:
        """Counts one."""
        place = bisect_left(self._bounds_s, elapsed_s)
        with self._lock:
            self._counts[labels][place] += 1
            self._sums_s[labels] += elapsed_s  # type: ignore[assignment]  # as above

    def family(self) -> Family:
        """All of it."""
        with self._lock:
            found = sorted((labels, [*counts], self._sums_s[labels]) for labels, counts in self._counts.items())
        family = HistogramMetricFamily(self._name, self._says, labels=self._labels)
        bounds = [*(repr(bound) for bound in self._bounds_s), "+Inf"]
        for labels, counts, sum_s in found:
            family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), sum_s)
        return family


class Levels:
    """How things stand now, by labels."""

    def __init__(self, name: str, says: str, labels: Sequence[str]) -> None:
        self._name, self._says, self._labels = name, says, labels
        self._values: dict[Labels, float] = {}

    def put(self, value: float, *labels: str) -> None:
        """States one."""
        self._values[labels] = value

    def of(self, *labels: str) -> float | None:
        """What was stated under labels; None where nothing was."""
        return self._values.get(labels)

    def family(self) -> Family:
        """All of it."""
        return levels(self._name, self._says, self._labels, self._values.copy().items())


def levels(name: str, says: str, labels: Sequence[str], values: Iterable[tuple[Labels, float]]) -> Family:
    """A family of gauges: one row per pair of labels and value."""
    family = GaugeMetricFamily(name, says, labels=labels)
    for own, value in sorted(values):
        family.add_metric(own, value)
    return family
