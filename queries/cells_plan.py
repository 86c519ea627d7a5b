"""A period and the hours and days that were summed up in, what of it is read from days, hours and blocks out.

Nothing is read twice: a day that is summed up holds its hours, an hour its blocks. What is not aligned to a block is rounded outward to one;
where blocks were dropped already to an hour, and where hours were to a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

BLOCK, HOUR, DAY = timedelta(seconds=300), timedelta(hours=1), timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Range = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Held:
    """What there is: the hours and days that were summed up and the hours that were not; blocks and hours older than these moments are gone."""

    hours: Sequence[datetime]
    open_hours: Sequence[datetime]
    days: Sequence[datetime]
    blocks_from: datetime | None = None
    hours_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The period that is answered, and the ranges of each tier that it is read from: begin included, end excluded."""

    since: datetime
    until: datetime
    days: tuple[Range, ...]
    hours: tuple[Range, ...]
    blocks: tuple[Range, ...]


def plan(held: Held, since: datetime | None, until: datetime | None, *, by_hour: bool = False) -> Plan:
    """How a period is read; without an end it is all there is. With `by_hour` no day is read: its hours are told apart."""
    first, last = _ends(held)
    begin = _floor(since, _step(held, since)) if since else first
    end = _ceil(until, _step(held, until)) if until else last
    inside = [hour for hour in held.hours if begin <= hour and hour + HOUR <= end]
    days = [] if by_hour else [day for day in held.days if begin <= day and day + DAY <= end]
    of_days = {hour for day in days for hour in (day + HOUR * place for place in range(24))}
    hours = [hour for hour in inside if hour not in of_days]
    summed = set(inside)
    blocks = [hour for hour in (*held.hours, *held.open_hours) if hour < end and begin < hour + HOUR and hour not in summed]
    ranges = [(max(begin, hour), min(end, hour + HOUR)) for hour in blocks]
    return Plan(begin, max(begin, end), _merged(_spans(days, DAY)), _merged(_spans(hours, HOUR)), _merged(ranges))


def _ends(held: Held) -> Range:
    hours = sorted((*held.hours, *held.open_hours))
    days = sorted(held.days)
    first = min([*hours[:1], *days[:1]], default=_EPOCH)
    return first, max([*(hour + HOUR for hour in hours[-1:]), *(day + DAY for day in days[-1:])], default=first)


def _step(held: Held, moment: datetime) -> timedelta:
    """What a moment is rounded to: the finest that is still there."""
    if held.hours_from and moment < held.hours_from:
        return DAY
    return HOUR if held.blocks_from and moment < held.blocks_from else BLOCK


def _floor(moment: datetime, step: timedelta) -> datetime:
    return moment - (moment - _EPOCH) % step


def _ceil(moment: datetime, step: timedelta) -> datetime:
    return moment + -(moment - _EPOCH) % step


def _spans(begins: Iterable[datetime], length: timedelta) -> list[Range]:
    return [(begin, begin + length) for begin in begins]


def _merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same time in as few ranges as it takes."""
    found: list[Range] = []
    for begin, end in sorted(ranges):
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return tuple(found)
