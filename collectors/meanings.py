"""Metric-name tables in (`engines/metrics/*.toml`), what a sample means out: a canonical signal and the factor of its native unit."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import msgspec

from collectors.page_replica import OwnName
from collectors.samples import Arrived, Kind, Sample

# Canonical signals of samples: the kind of sample that can say them, and their unit. The series of one engine and replica that carry
# a signal make its value together: counts, tokens and bytes add up, ratios and sizes of a block average.
SAMPLE_SIGNALS: dict[str, tuple[Kind, str]] = {
    "kv_usage": ("gauge", "ratio"),
    "queue_depth": ("gauge", "count"),
    "running_requests": ("gauge", "count"),
    "kv_used_tokens": ("gauge", "tokens"),
    "kv_block_tokens": ("gauge", "tokens"),
    "gpu_utilization": ("gauge", "ratio"),
    "gpu_memory_used_bytes": ("gauge", "bytes"),
    "gpu_memory_free_bytes": ("gauge", "bytes"),
    "link_tx_bytes_per_s": ("gauge", "bytes/s"),
    "link_rx_bytes_per_s": ("gauge", "bytes/s"),
    "collective_s": ("gauge", "s"),
    "collective_bytes": ("gauge", "bytes"),
    "collective_algorithm_bytes_per_s": ("gauge", "bytes/s"),
    "collective_bus_bytes_per_s": ("gauge", "bytes/s"),
    "requests_total": ("counter", "count"),
    "prompt_tokens_total": ("counter", "tokens"),
    "output_tokens_total": ("counter", "tokens"),
    "cached_tokens_total": ("counter", "tokens"),
    "cache_queried_tokens_total": ("counter", "tokens"),
    "draft_tokens_total": ("counter", "tokens"),
    "accepted_tokens_total": ("counter", "tokens"),
    "verify_steps_total": ("counter", "count"),
    "preemptions_total": ("counter", "count"),
    "evicted_tokens_total": ("counter", "tokens"),
    "kv_transfer_failures_total": ("counter", "count"),
    "ttft_s": ("histogram", "s"),
    "e2e_s": ("histogram", "s"),
    "queue_s": ("histogram", "s"),
    "prefill_s": ("histogram", "s"),
    "decode_s": ("histogram", "s"),
    "tpot_s": ("histogram", "s"),
    "step_s": ("histogram", "s"),
    "prompt_tokens": ("histogram", "tokens"),
    "output_tokens": ("histogram", "tokens"),
    "cached_tokens": ("histogram", "tokens"),
    "kv_transfer_s": ("histogram", "s"),
    "kv_transfer_bytes": ("histogram", "bytes"),
    "kv_transfer_bytes_per_s": ("histogram", "bytes/s"),
}
# The native units of each canonical one, with what one of them is in it.
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "bytes": {"bytes": 1.0, "kib": 1024.0, "mib": 1048576.0, "gib": 1073741824.0},
    "bytes/s": {"bytes/s": 1.0, "gb/s": 1e9, "gib/s": 1073741824.0},
    "tokens": {"tokens": 1.0},
    "count": {"count": 1.0},
    "ratio": {"ratio": 1.0, "percent": 1e-2},
}


DIALECT = "leverwatch.dialect"


class MeaningError(ValueError):
    """A metric-name table says something that cannot be read; the file and the key are named."""


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A native metric that carries a signal, its unit, and which of its series count: those whose labels are as `take` says where
    they have them, and none that is as `drop` says. Of an info metric, whose value is 1, the number in its label `label` counts."""

    name: str
    unit: str
    take: dict[str, str] = {}
    drop: dict[str, tuple[str, ...]] = {}
    label: str = ""

    def times(self, labels: Mapping[str, str]) -> float:
        """What a series' value is to be multiplied by: 1, or the number in its label."""
        return float(labels[self.label]) if self.label else 1.0

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Whether a series is one to count."""
        if self.label and not labels.get(self.label, "").isdecimal():
            return False
        return all(labels.get(key, value) == value for key, value in self.take.items()) and not any(
            labels.get(key) in values for key, values in self.drop.items()
        )


class MetricNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exporter's metric names. Of the names of a signal the first that a replica sends is the one that counts.

    `bare` is the prefix that early versions leave out: names without it are read where the label `leverwatch.dialect` says whose they are.
    `own_name` is how a process's page names the replica that it is.
    """

    engine: str
    signals: dict[str, tuple[Named, ...]]
    cannot: dict[str, str] = {}
    bare: str = ""
    own_name: OwnName | None = None


@dataclass(frozen=True, slots=True)
class _Meaning:
    signal: str
    engine: str
    factor: float
    place: int
    named: Named


@dataclass(frozen=True)
class Meanings:
    """All tables, by metric name, the prefixes that an engine's early versions leave out, and how pages name their own replica."""

    of_name: Mapping[str, tuple[_Meaning, ...]]
    bare: Mapping[str, str]
    own_names: tuple[OwnName, ...] = ()

    def given(self, samples: Sequence[Sample]) -> list[Arrived]:
        """Each sample of one body with its meaning. A twin under another name of the same replica means nothing beside the first."""
        found = [self._of(sample) for sample in samples]
        first: dict[tuple[str, str, str], int] = {}
        for sample, meaning in zip(samples, found, strict=True):
            if meaning is not None:
                key = (sample.replica, meaning.engine, meaning.signal)
                first[key] = min(first.get(key, meaning.place), meaning.place)
        return [
            Arrived(sample, meaning.signal, meaning.engine, meaning.factor * meaning.named.times(sample.labels))
            if meaning is not None and meaning.place == first[sample.replica, meaning.engine, meaning.signal]
            else Arrived(sample)
            for sample, meaning in zip(samples, found, strict=True)
        ]

    def _of(self, sample: Sample) -> _Meaning | None:
        name = sample.name.removesuffix("_total") if sample.kind == "counter" else sample.name
        known = self.of_name.get(name) or self.of_name.get(f"{self.bare.get(sample.labels.get(DIALECT, ''), '')}{name}", ())
        for meaning in known:
            if SAMPLE_SIGNALS[meaning.signal][0] == sample.kind and meaning.named.counts(sample.labels):
                return meaning
        return None


@functools.cache
def shipped() -> Meanings:
    """The tables in `engines/metrics/`.

    Raises:
        MeaningError: a file that cannot be read.
    """
    folder = resources.files("collectors") / "engines" / "metrics"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return meanings(load(name, (folder / name).read_bytes()) for name in names)


def load(name: str, text: bytes) -> MetricNames:
    """A table from the text of its file.

    Raises:
        MeaningError: names the file, the key, what came and what is taken.
    """
    try:
        table = msgspec.toml.decode(text, type=MetricNames)
    except msgspec.DecodeError as error:
        msg = f"engines/metrics/{name}: {error}"
        raise MeaningError(msg) from error
    for signal in (*table.signals, *table.cannot):
        if signal not in SAMPLE_SIGNALS:
            near = difflib.get_close_matches(signal, SAMPLE_SIGNALS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ";"
            msg = f"engines/metrics/{name}: signal {signal!r} is unknown{hint} known: {', '.join(SAMPLE_SIGNALS)}"
            raise MeaningError(msg)
    for signal, sources in table.signals.items():
        taken = UNITS[SAMPLE_SIGNALS[signal][1]]
        for source in sources:
            if source.unit not in taken:
                msg = f"engines/metrics/{name}: signal {signal!r}: unit {source.unit!r} of {source.name!r}; taken: {', '.join(taken)}"
                raise MeaningError(msg)
    return table


def meanings(tables: Iterable[MetricNames]) -> Meanings:
    """Tables by metric name. A counter's name stands without `_total`: OTLP and older texts leave it out."""
    of_name: dict[str, tuple[_Meaning, ...]] = {}
    bare: dict[str, str] = {}
    own_names: list[OwnName] = []
    for table in tables:
        own_names += [table.own_name] if table.own_name else []
        if table.bare:
            bare[table.engine] = table.bare
        for signal, sources in table.signals.items():
            kind, unit = SAMPLE_SIGNALS[signal]
            for place, source in enumerate(sources):
                name = source.name.removesuffix("_total") if kind == "counter" else source.name
                of_name[name] = (*of_name.get(name, ()), _Meaning(signal, table.engine, UNITS[unit][source.unit], place, source))
    return Meanings(of_name, bare, tuple(own_names))
