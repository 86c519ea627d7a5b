"""A switchback schedule's CSV in, its periods out, and back; and what the registry has to say of them (docs/switchback.md)."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.schedule_rows import HEADER, TREATED, Period, ScheduleError, period


def read(path: Path) -> tuple[Period, ...]:
    """The periods that a file states.

    Raises:
        ScheduleError: the file cannot be read, or a line of it cannot be used; names both.
    """
    try:
        found = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: {error.strerror if isinstance(error, OSError) else 'is no UTF-8 text'}"
        raise ScheduleError(msg) from error
    return parse(found, str(path))


def parse(text: str, where: str) -> tuple[Period, ...]:
    """The periods that a CSV text states, in its order.

    Raises:
        ScheduleError: names `where` and the line.
    """
    numbered = list(_rows(text, where))
    _refuse_overlaps(numbered, where)
    _refuse_halves(numbered, where)
    return tuple(one for _, one in numbered)


def text(periods: Iterable[Period]) -> str:
    """The periods as CSV, as `parse` reads it."""
    return _csv(HEADER, (one.cells() for one in periods))


def registry_text(periods: Iterable[Period]) -> str:
    """What `levers.csv` has to say so that requests of the measured times, and no others, are of their arm."""
    header = ("replica", "from_time", "until_time", "key", "value")
    return _csv(header, ((one.replica, *one.measured_text(), f"arm.{one.lever}", one.arm) for one in periods))


def _rows(told: str, where: str) -> Iterable[tuple[int, Period]]:
    lines = csv.reader(io.StringIO(told), strict=True)
    try:
        head = next(lines, [])
        if tuple(name.strip() for name in head) != HEADER:
            msg = f"{where}: line 1: {','.join(head)!r}: the header {','.join(HEADER)} is taken"
            raise ScheduleError(msg)
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield lines.line_num, period([cell.strip() for cell in cells], f"{where}: line {lines.line_num}")
    except csv.Error as error:
        msg = f"{where}: line {lines.line_num}: {error}"
        raise ScheduleError(msg) from error


def _refuse_overlaps(numbered: Sequence[tuple[int, Period]], where: str) -> None:
    last: dict[tuple[str, str], tuple[int, Period]] = {}
    for line, one in sorted(numbered, key=lambda row: (row[1].since, row[0])):
        before = last.get((one.lever, one.replica))
        if before is not None and before[1].until > one.since:
            lines = sorted((before[0], line))
            msg = f"{where}: lines {lines[0]} and {lines[1]} both say {one.lever} of {one.replica!r} for the same time"
            raise ScheduleError(msg)
        last[one.lever, one.replica] = (line, one)


def _refuse_halves(numbered: Sequence[tuple[int, Period]], where: str) -> None:
    """A pair is a period of treated and one of another arm, of one length, one right after the other."""
    pairs: dict[tuple[str, str, int], list[tuple[int, Period]]] = defaultdict(list)
    for line, one in numbered:
        pairs[one.lever, one.replica, one.pair].append((line, one))
    for (lever, replica, number), held in pairs.items():
        told = sorted(held, key=lambda row: row[1].since)
        lines = ", ".join(str(line) for line, _ in told)
        named = f"{where}: line {lines}: pair {number} of {lever} on {replica!r}"
        if len(told) != 2 or sum(one.arm == TREATED for _, one in told) != 1:
            msg = f"{named} has {', '.join(one.arm for _, one in told)}; a period of treated and one of another arm are taken"
            raise ScheduleError(msg)
        (_, first), (_, second) = told
        if first.until != second.since or first.until - first.since != second.until - second.since:
            msg = f"{named}: two periods of one length, one right after the other, are taken"
            raise ScheduleError(msg)


def _csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
