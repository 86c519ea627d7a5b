"""Metrics of one process in, their Prometheus text out, as the client library for Python prints it; label texts are made once.

A family's series are printed in the order they were first asked for; a family without any is left out. Labels stand in order of name.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from prometheus_client.utils import floatToGoString

Kind = Literal["counter", "gauge"]
WHOLE = 1_000_000
"""Whole numbers below it are printed as they are, which is quicker said here than asked of the library."""


def number(value: float) -> str:
    """A value as it is printed."""
    if 0 <= value < WHOLE and value == int(value):
        return f"{int(value)}.0"
    printed: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return printed


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels between braces, in order; nothing where there are none."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items())) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class Values:
    """A family of counters or gauges. A counter's name goes without `_total`."""

    def __init__(self, kind: Kind, name: str, what: str, labels: Mapping[str, str]) -> None:
        self._kind, self._name, self._labels = kind, name, dict(labels)
        self._printed_name = f"{name}_total" if kind == "counter" else name
        self._head = _head(self._printed_name, what, kind)
        self._heads: dict[tuple[str, ...], str] = {}
        self._values: dict[tuple[str, ...], float] = {}
        self._created = _head(f"{name}_created", what, "gauge")
        self._created_heads: list[str] = []

    def set(self, value: float, **labels: str) -> None:
        """What a series has come to."""
        key = tuple(labels.values())
        if key not in self._heads:
            said = labels_text({**self._labels, **labels})
            self._heads[key] = f"{self._printed_name}{said} "
            self._created_heads.append(f"{self._name}_created{said} ")
        self._values[key] = value

    def text(self, created: str) -> Iterator[str]:
        """Lines; `created` is when a counter's series began, and empty where that is not printed."""
        if not self._heads:
            return
        yield self._head
        values = self._values
        yield "".join([f"{head}{number(values[key])}\n" for key, head in self._heads.items()])
        if self._kind == "counter" and created:
            yield self._created
            yield "".join([f"{head}{created}\n" for head in self._created_heads])


class Histogram:
    """A family of one histogram a label set. With `sum_first` its sum stands above its buckets, as where several processes share a page."""

    def __init__(self, name: str, what: str, labels: Mapping[str, str], edges: Sequence[float], *, sum_first: bool = False) -> None:
        self._name, self._labels, self._sum_first = name, dict(labels), sum_first
        self._edges = tuple(float(edge) for edge in edges)
        self._head, self._created = _head(name, what, "histogram"), _head(f"{name}_created", what, "gauge")
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        self._heads: dict[tuple[str, ...], _HistogramHeads] = {}
        self._text: dict[tuple[str, ...], str] = {}

    def observe(self, value: float, times: int = 1, /, **labels: str) -> None:
        """Counts a value, or several that are the same."""
        key = self.seen(**labels)
        self._counts[key][bisect_left(self._edges, value)] += times
        self._sums[key] += value * times
        self._text.pop(key, None)

    def seen(self, **labels: str) -> tuple[str, ...]:
        """Makes a series be printed, with or without an observation, and gives its key."""
        key = tuple(labels.values())
        if key not in self._counts:
            self._counts[key] = [0] * (len(self._edges) + 1)
            self._sums[key] = 0.0
            self._heads[key] = _HistogramHeads(self._name, {**self._labels, **labels}, self._edges)
        return key

    def text(self, created: str) -> Iterator[str]:
        """Lines; `created` is when the series began, and empty where that is not printed."""
        if not self._counts:
            return
        yield self._head
        for key in self._counts:
            if key not in self._text:
                self._text[key] = self._of_series(key)
            yield self._text[key]
        if created:
            yield self._created
            for heads in self._heads.values():
                yield f"{heads.created}{created}\n"

    def _of_series(self, key: tuple[str, ...]) -> str:
        counts, heads = self._counts[key], self._heads[key]
        reached = list(itertools.accumulate(counts))
        buckets = "".join([f"{head}{number(count)}\n" for head, count in zip(heads.buckets, reached, strict=True)])
        count, total = f"{heads.count}{number(reached[-1])}\n", f"{heads.sum}{number(self._sums[key])}\n"
        return total + buckets + count if self._sum_first else buckets + count + total


class _HistogramHeads:
    def __init__(self, name: str, labels: Mapping[str, str], edges: Sequence[float]) -> None:
        texts = [*map(floatToGoString, edges), "+Inf"]
        self.buckets = [f"{name}_bucket{labels_text({**labels, 'le': edge})} " for edge in texts]
        self.count, self.sum = f"{name}_count{labels_text(labels)} ", f"{name}_sum{labels_text(labels)} "
        self.created = f"{name}_created{labels_text(labels)} "


def _head(name: str, what: str, kind: str) -> str:
    return f"# HELP {name} {what}\n# TYPE {name} {kind}\n"
