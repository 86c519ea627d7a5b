"""What two policies say of the same history in, where they say otherwise out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from alerts.backtest_told import Backtest, Recommendation


class Otherwise(NamedTuple):
    """A recommendation that only one of two policies makes, or that they make at other times, or with other actions."""

    lever: str
    segment: str
    old: Recommendation | None
    new: Recommendation | None


def otherwise(old: Backtest, new: Backtest) -> list[Otherwise]:
    """Recommendations of a lever and segment that overlap in time are the same one; those that are alike are left out."""
    rest = list(new.recommendations)
    found = []
    for one in old.recommendations:
        other = next((other for other in rest if _is_same(one, other)), None)
        if other is not None:
            rest.remove(other)
        if other is None or _told(one) != _told(other):
            found.append(Otherwise(one.lever, one.segment, one, other))
    found += [Otherwise(other.lever, other.segment, None, other) for other in rest]
    return sorted(found, key=lambda row: (min(one.fired_at for one in (row.old, row.new) if one is not None), row.segment))


def verdict_blocks(old: Backtest, new: Backtest) -> Iterator[tuple[str, str, dict[str, int], dict[str, int]]]:
    """Streams of which other numbers of blocks have each verdict: (lever, segment, old's, new's)."""
    sides = [{(one.lever, one.segment): one.verdicts for one in found.streams} for found in (old, new)]
    for key in sorted({*sides[0], *sides[1]}):
        before, after = (side.get(key, {}) for side in sides)
        if before != after:
            yield *key, before, after


def _is_same(one: Recommendation, other: Recommendation) -> bool:
    return (one.lever, one.segment) == (other.lever, other.segment) and _begins_within(one, other) | _begins_within(other, one)


def _begins_within(one: Recommendation, other: Recommendation) -> bool:
    return one.fired_at >= other.fired_at and (other.ended_at is None or one.fired_at < other.ended_at)


def _told(one: Recommendation) -> tuple[datetime, datetime | None, str, str, bool]:
    return one.fired_at, one.ended_at, one.action, one.severity, one.shadow
