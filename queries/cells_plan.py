"""A period and what was summed up in, what of the period is read from weeks, days, hours and blocks out.

Nothing is read twice: a week that is summed up holds its days, a day its hours, an hour its blocks. What is not aligned to a block is
rounded outward to one; where blocks were dropped already to an hour, and where hours were to a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

BLOCK, HOUR, DAY, WEEK = timedelta(seconds=300), timedelta(hours=1), timedelta(days=1), timedelta(days=7)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Range = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Held:
    """The hours, days and weeks that were summed up, and hours that were not; blocks and hours older than the last two moments are gone."""

    hours: Sequence[datetime]
    open_hours: Sequence[datetime]
    days: Sequence[datetime]
    weeks: Sequence[datetime] = ()
    blocks_from: datetime | None = None
    hours_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The period that is answered, and the ranges of each tier that it is read from: begin included, end excluded."""

    since: datetime
    until: datetime
    weeks: tuple[Range, ...]
    days: tuple[Range, ...]
    hours: tuple[Range, ...]
    blocks: tuple[Range, ...]


def plan(held: Held, since: datetime | None, until: datetime | None, time: str | None = None, *, by_replica: bool = False) -> Plan:
    """How a period is read; without an end it is all there is.

    What is longer than `time` (hour, day) is not read: these are told apart; nor are weeks where replicas are told apart.
    """
    first, last = _ends(held)
    begin = _floor(since, _step(held, since)) if since else first
    end = _ceil(until, _step(held, until)) if until else last
    inside = [hour for hour in held.hours if begin <= hour and hour + HOUR <= end]
    days = [] if time == "hour" else [day for day in held.days if begin <= day and day + DAY <= end]
    weeks = [] if time or by_replica else [week for week in held.weeks if begin <= week and week + WEEK <= end]
    of_weeks, of_days = _parts(weeks, WEEK, DAY), _parts(days, DAY, HOUR)
    summed = set(inside)
    blocks = [hour for hour in (*held.hours, *held.open_hours) if hour < end and begin < hour + HOUR and hour not in summed]
    return Plan(
        begin,
        max(begin, end),
        _merged(_spans(weeks, WEEK)),
        _merged(_spans([day for day in days if day not in of_weeks], DAY)),
        _merged(_spans([hour for hour in inside if hour not in of_days], HOUR)),
        _merged((max(begin, hour), min(end, hour + HOUR)) for hour in blocks),
    )


def _parts(begins: Iterable[datetime], length: timedelta, step: timedelta) -> set[datetime]:
    return {begin + step * place for begin in begins for place in range(length // step)}


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
