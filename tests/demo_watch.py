"""Cells of a scenario in, what evidence says of each stream block by block out, by the code that serves; and when a stream was accused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import polars as pl
from demo_cells import BEGAN, BLOCK

from alerts.effects import Effect
from pipeline import evidence_lengths
from pipeline.evidence import advanced
from pipeline.evidence_families import FAMILIES
from pipeline.evidence_streams import Streams

HOUR_S = 3600.0
LATCHED_PAST = 0.02
"""What a gain or a loss has to be past for an action to be latched, as shipped policies have it: less is not worth a switch."""
_NOTHING = Effect("", BEGAN, BEGAN, 0, 0, 0, None, None, None, None, None, "control", 1.0, None)


class Stream(NamedTuple):
    """A metric of a lever in a segment."""

    lever: str
    segment: str
    metric: str


class Said(NamedTuple):
    """What is said of a stream at a block's end, counted from the scenario's beginning; only from when its scale is known.

    One that is `uncalibrated` is not what its scale says, and nothing follows of it.
    """

    hour: float
    effect: Effect
    uncalibrated: bool

    def accuses(self, limit: float = 0.0, *, above: bool = False, alone: bool = False) -> bool:
        """Whether a gain below, or above, the limit is evident `alone`, or so that it may be latched: beside all segments, by a margin."""
        if not alone:
            limit = max(limit, LATCHED_PAST) if above else min(limit, -LATCHED_PAST)
        effect = self.effect._replace(tests=1) if alone else self.effect
        return (alone or not self.uncalibrated) and bool(effect.is_evident(limit, above=above))


def watch(cells: pl.DataFrame) -> dict[Stream, list[Said]]:
    """All that is said of each stream whose scale became known, in order."""
    kept = [Streams.start(family) for family in FAMILIES]
    said: dict[Stream, list[Said]] = {}
    for started_at, block in _blocks(cells):
        moved = [advanced(one, block, started_at + BLOCK) for one in kept]
        kept = [_lengthened(one, cells, started_at + BLOCK) for one, _ in moved]
        for _, found in moved:
            for row in found.drop_nulls("evidence").iter_rows(named=True):
                said.setdefault(Stream(row["lever"], row["segment"], row["metric"]), []).append(_said(row, started_at + BLOCK))
    return said


def first(said: list[Said], since_hour: float, until_hour: float, **how: Any) -> float | None:
    """The hour of the first block that ends after the one and not after the other and accuses (see `Said.accuses`)."""
    return next((one.hour for one in said if since_hour < one.hour <= until_hour and one.accuses(**how)), None)


def _blocks(cells: pl.DataFrame) -> Iterator[tuple[datetime, pl.DataFrame]]:
    for (started_at, *_), block in cells.group_by("block_started_at", maintain_order=True):
        assert isinstance(started_at, datetime)
        yield started_at, block


def _lengthened(streams: Streams, cells: pl.DataFrame, ended_at: datetime) -> Streams:
    """The streams with their blocks as long as the day before asks for, as the store's are."""
    pairs = evidence_lengths.due(streams)
    if not pairs:
        return streams
    day = cells.filter((pl.col("block_started_at") >= ended_at - evidence_lengths.DAY) & (pl.col("block_started_at") < ended_at))
    return evidence_lengths.lengthened(streams, pairs, evidence_lengths.sums(streams, pairs, day, ended_at))


def _said(row: dict[str, Any], until: datetime) -> Said:
    told = {name: row[name] for name in ("metric", "evidence_below", "evidence_above", "tests")}
    return Said((until - BEGAN) / timedelta(seconds=HOUR_S), _NOTHING._replace(**told), row["uncalibrated"])
