"""Labels of times in which a lever did harm, and a back-test's recommendations in; which fired falsely, and how early or late, out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from alerts.backtest_told import Backtest, Recommendation, Row
from alerts.levers import LEVERS, unknown

COLUMNS = ("lever", "segment", "from", "until", "note")
BLOCK_S = 300
DAY_S = 86_400
BEFORE = timedelta(days=1)  # an operator's switch as long before a recommendation is still about the same


class LabelError(ValueError):
    """A file of labels that cannot be used: names the line, what came and what is taken."""


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A time in which a lever did harm, on segments with these keys; `until` is None where it lasts."""

    lever: str
    segment: dict[str, str]
    since: datetime
    until: datetime | None = None
    note: str = ""

    def covers(self, one: Row) -> bool:
        """Whether a stream is one of those that the label is about."""
        keys: dict[str, str] = json.loads(one.segment)
        return self.lever == one.lever and all(keys.get(name) == value for name, value in self.segment.items())

    def holds_at(self, moment: datetime) -> bool:
        """Whether a moment lies within the labeled time."""
        return self.since <= moment and (self.until is None or moment < self.until)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A recommendation beside what was so. `after_s` counts from the label's begin, `before_switch_s` to the operator's own switch."""

    recommendation: Recommendation
    is_false: bool | None
    note: str = ""
    after_s: float | None = None
    before_switch_s: float | None = None
    lasted_s: float | None = None


def labels(text: str, where: str) -> tuple[Label, ...]:
    """The labels of a CSV text with the columns lever, segment, from, until, note; a segment is JSON, `{}` or empty for all.

    Raises:
        LabelError: a column or a value is not as it has to be.
    """
    rows = csv.DictReader(io.StringIO(text))
    names = tuple(rows.fieldnames or ())
    if not {"lever", "from"}.issubset(names) or not set(names).issubset(COLUMNS):
        msg = f"{where}: columns {', '.join(names) or 'none'}: {', '.join(COLUMNS)} are taken, of which lever and from are needed"
        raise LabelError(msg)
    return tuple(_label(row, f"{where}: line {rows.line_num}") for row in rows)


def marks(found: Backtest, given: Sequence[Label] | None) -> tuple[Mark, ...]:
    """Each recommendation beside the labels (None: there are none, nothing is false) and the operator's own switches."""
    return tuple(_mark(found, one, given) for one in found.recommendations)


def missed(found: Backtest, given: Sequence[Label]) -> tuple[Label, ...]:
    """The labels whose streams were judged in their time, and of which no recommendation told."""
    return tuple(label for label in given if _was_judged(found, label) and not _was_told(found, label))


def stream_days(found: Backtest) -> float:
    """For how many days all streams together were judged."""
    return sum(stream.blocks for stream in found.streams) * BLOCK_S / DAY_S


def _mark(found: Backtest, one: Recommendation, given: Sequence[Label] | None) -> Mark:
    label = next((label for label in given or () if label.covers(one) and label.holds_at(one.fired_at)), None)
    after_s = (one.fired_at - label.since).total_seconds() if label else None
    lasted_s = (one.ended_at - one.fired_at).total_seconds() if one.ended_at else None
    false = None if given is None else label is None
    told = {"after_s": after_s, "before_switch_s": _before_switch_s(found, one), "lasted_s": lasted_s}
    return Mark(recommendation=one, is_false=false, note=label.note if label else "", **told)


def _before_switch_s(found: Backtest, one: Recommendation) -> float | None:
    """How long before the operator's own next switch it fired; negative where they had been quicker; None where there was none."""
    theirs = (
        switch.switched_at
        for switch in found.switches
        if (switch.lever, switch.segment) == (one.lever, one.segment) and switch.switched_at > one.fired_at - BEFORE
    )
    first = min(theirs, default=None)
    return (first - one.fired_at).total_seconds() if first else None


def _was_judged(found: Backtest, label: Label) -> bool:
    return any(
        label.covers(stream) and stream.last_block_at > label.since and (label.until is None or stream.first_block_at < label.until)
        for stream in found.streams
    )


def _was_told(found: Backtest, label: Label) -> bool:
    return any(
        label.covers(one) and (one.ended_at is None or one.ended_at > label.since) and (label.until is None or one.fired_at < label.until)
        for one in found.recommendations
    )


def _label(row: dict[str, str | None], where: str) -> Label:
    lever = (row["lever"] or "").strip()
    if lever not in LEVERS:
        msg = f"{where}: {unknown('lever', lever, LEVERS)}"
        raise LabelError(msg)
    since = _moment(row, "from", where)
    until = _moment(row, "until", where) if (row.get("until") or "").strip() else None
    if until is not None and until <= since:
        msg = f"{where}: until {row.get('until')!r} is not after from {row['from']!r}"
        raise LabelError(msg)
    return Label(lever=lever, segment=_segment(row, where), since=since, until=until, note=(row.get("note") or "").strip())


def _segment(row: dict[str, str | None], where: str) -> dict[str, str]:
    text = (row.get("segment") or "").strip() or "{}"
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        msg = f'{where}: segment {text[:80]!r} is no JSON object of texts; takes {{}} or such as {{"model": "m"}}: {error}'
        raise LabelError(msg) from error


def _moment(row: dict[str, str | None], column: str, where: str) -> datetime:
    text = (row[column] or "").strip()
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        msg = f"{where}: {column} {text[:40]!r} is no time; takes ISO 8601, without an offset UTC"
        raise LabelError(msg) from error
