"""What one time series said at one moment, and such samples as rows of `samples`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

Kind = Literal["gauge", "counter", "histogram"]
MICROSECOND = pa.timestamp("us", "UTC")
DELTA = {"leverwatch.temporality": "delta"}  # the label of a counter or histogram that covers `since` to `observed_at` alone


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample in its native unit. `value` is a gauge's level, a counter's total, or the sum of a histogram's observations.

    `counts` holds the observations per bucket, not cumulated, one more than `bounds` (upper bounds, inclusive); `total` is their number.
    """

    observed_unix_nano: int
    replica: str
    name: str
    labels: Mapping[str, str]
    kind: Kind
    value: float | None
    bounds: Sequence[float] | None = None
    counts: Sequence[int] | None = None
    total: int | None = None
    since_unix_nano: int = 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """A point that is no sample: `is_wrong` where its sender made a mistake, else it is sound and is not kept."""

    reason: str
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Arrived:
    """A sample, and what it means: a canonical signal of an engine and its unit's factor, or none."""

    sample: Sample
    signal: str | None = None
    engine: str | None = None
    factor: float = 1.0


def rows(arrived: Sequence[Arrived], record: int, sender: str, received_unix_nano: int) -> pa.Table:
    """Rows of `samples`, one per sample, with the number of their record in `arrival`; values with a signal are in its canonical unit."""
    said = [one.sample for one in arrived]
    return pa.table(
        {
            "observed_at": _times([sample.observed_unix_nano for sample in said]),
            "replica": pa.array([sample.replica for sample in said], pa.string()),
            "name": pa.array([sample.name for sample in said], pa.string()),
            "labels": pa.array([sorted(sample.labels.items()) for sample in said], pa.map_(pa.string(), pa.string())),
            "value": pa.array([None if one.sample.value is None else one.sample.value * one.factor for one in arrived], pa.float64()),
            "kind": pa.array([sample.kind for sample in said], pa.string()),
            "bounds": pa.array([_scaled(one.sample.bounds, one.factor) for one in arrived], pa.list_(pa.float64())),
            "counts": pa.array([sample.counts for sample in said], pa.list_(pa.int64())),
            "total": pa.array([sample.total for sample in said], pa.int64()),
            "since": _times([sample.since_unix_nano or None for sample in said]),
            "signal": pa.array([one.signal for one in arrived], pa.string()),
            "engine": pa.array([one.engine for one in arrived], pa.string()),
            "sender": pa.array([sender] * len(arrived), pa.string()),
            "received_at": _times([received_unix_nano] * len(arrived)),
            "arrival": pa.array([record] * len(arrived), pa.int64()),
        }
    )


def _scaled(bounds: Sequence[float] | None, factor: float) -> list[float] | None:
    return None if bounds is None else [bound * factor for bound in bounds]


def _times(unix_nano: Sequence[int | None]) -> pa.Array:
    return pa.array([None if moment is None else moment // 1000 for moment in unix_nano], pa.int64()).cast(MICROSECOND)
