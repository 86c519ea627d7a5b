"""The cells of one line of a switchback schedule in, a period out: one replica with one arm of a lever, from a time until another."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pipeline.segments import ARMS, LEVERS

HEADER = ("lever", "replica", "pair", "arm", "from_time", "until_time", "burn_in_s", "tail_s")
TREATED = "treated"


class ScheduleError(ValueError):
    """A switchback schedule cannot be used; names the file and line, what came and what is taken."""


@dataclass(frozen=True, slots=True)
class Period:
    """A replica runs with one arm of a lever from `since` until `until` (exclusive); its two ends are not measured (seconds)."""

    lever: str
    replica: str
    pair: int
    arm: str
    since: datetime
    until: datetime
    burn_in_s: int
    tail_s: int

    @property
    def measured(self) -> tuple[datetime, datetime]:
        """From when until when (exclusive) requests that begin count."""
        return self.since + timedelta(seconds=self.burn_in_s), self.until - timedelta(seconds=self.tail_s)

    def cells(self) -> tuple[str, ...]:
        """The line of a file that states this period."""
        times = _utc(self.since), _utc(self.until)
        return self.lever, self.replica, str(self.pair), self.arm, *times, str(self.burn_in_s), str(self.tail_s)

    def measured_text(self) -> tuple[str, str]:
        """`measured` as a file says it."""
        since, until = self.measured
        return _utc(since), _utc(until)


def period(cells: Sequence[str], at: str) -> Period:
    """The period that a line's cells state; `at` names the file and line.

    Raises:
        ScheduleError: a cell is missing or cannot be used.
    """
    if len(cells) != len(HEADER):
        msg = f"{at}: {len(cells)} cells: {len(HEADER)} are taken, {','.join(HEADER)}"
        raise ScheduleError(msg)
    lever, replica, pair, arm, since, until, burn_in, tail = cells
    _refuse_word(at, "lever", lever, LEVERS)
    _refuse_word(at, "arm", arm, ARMS)
    if not replica:
        msg = f"{at}: replica is empty: a replica's name is taken"
        raise ScheduleError(msg)
    seconds = [_whole(at, name, text, 0) for name, text in (("burn_in_s", burn_in), ("tail_s", tail))]
    found = Period(
        lever, replica, _whole(at, "pair", pair, 1), arm, _instant(at, "from_time", since), _instant(at, "until_time", until), *seconds
    )
    if found.measured[1] <= found.measured[0]:
        msg = f"{at}: from {since!r} until {until!r} leaves nothing to measure after burn_in_s {burn_in} and before tail_s {tail}"
        raise ScheduleError(msg)
    return found


def _refuse_word(at: str, name: str, word: str, known: Sequence[str]) -> None:
    if word in known:
        return
    near = difflib.get_close_matches(word, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ";"
    msg = f"{at}: {name} {word!r} is unknown{meant} known: {', '.join(known)}"
    raise ScheduleError(msg)


def _whole(at: str, name: str, text: str, least: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if number < least:
        msg = f"{at}: {name} {text!r}: a whole number from {least} on is taken"
        raise ScheduleError(msg)
    return number


def _instant(at: str, name: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        msg = f"{at}: {name} {text!r}: ISO 8601 such as 2026-11-29T12:00:00Z is taken"
        raise ScheduleError(msg) from error
    if not 1970 <= moment.year < 9000:  # nothing is measured there, and arithmetic with times would overflow
        msg = f"{at}: {name} {text!r}: a year from 1970 to 8999 is taken"
        raise ScheduleError(msg)
    return moment


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
