"""A back-test and its recommendations beside labels in, text for a terminal out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import polars as pl

from alerts import wording
from alerts.backtest_labels import Label, Mark, stream_days
from alerts.backtest_missed import why
from alerts.backtest_stretches import Stretch
from alerts.backtest_told import Backtest, Judged
from leverwatch.cli import common
from pipeline.segments import canonical

MOST_UNDECIDED = 20
MOST_NEAR = 10
UNDECIDED = ("insufficient", "frozen", "conflicted")


def text(found: Backtest, seen: Sequence[Mark], unmet: Sequence[Label], unknown: Sequence[Label] = ()) -> str:
    """What a back-test says, for people: recommendations, then how often, how near the others came, what was missed, and not known."""
    lines = [*_fired(seen), *_often(found, seen), *_near(found, seen), *missed(found, unmet, unknown), *_undecided(found.streams)]
    return "\n".join([*lines, *(f"note: {note}" for note in found.notes)]) + "\n"


def span(seconds: float) -> str:
    """A time span in two units at most: `35 min`, `3 h 20 min`, `2 d 4 h`."""
    minutes = round(abs(seconds) / 60)
    days, hours = divmod(minutes // 60, 24)
    parts = [(days, "d"), (hours, "h"), (minutes % 60, "min")]
    said = [f"{number} {unit}" for number, unit in (parts[:2] if days else parts) if number] or ["0 min"]
    return " ".join(said)


def moment(when: datetime) -> str:
    """A time to the minute, in UTC."""
    return wording.utc(when)[:16] + "Z"


def _fired(seen: Sequence[Mark]) -> Iterator[str]:
    if not seen:
        yield "No policy would have recommended anything."
        return
    rows = [{"no": str(number), **_row(mark)} for number, mark in enumerate(seen, 1)]
    unused = {name for name in rows[0] if not any(row[name] for row in rows)}
    frame = pl.DataFrame([{name: cell for name, cell in row.items() if name not in unused} for row in rows])
    yield (common.write(frame, "table", None) or "").rstrip()
    told = ((number, mark.recommendation) for number, mark in enumerate(seen, 1))
    yield from (f"{number}: {one.policy} on {one.segment}: {one.reason}" for number, one in told)


def _row(mark: Mark) -> dict[str, str]:
    one = mark.recommendation
    lasted = span(mark.lasted_s) if mark.lasted_s is not None else "still"
    after = "" if mark.after_s is None else f"{span(mark.after_s)} after" + (f" ({mark.note})" if mark.note else "")
    return {
        "fired": moment(one.fired_at),
        "policy": one.policy,
        "lever": one.lever,
        "action": one.action + (" (shadow)" if one.shadow else ""),
        "why": one.reason_code,
        "label": "FALSE" if mark.is_false else after,
        "operators' switch": "" if mark.before_switch_s is None else _switched(mark.before_switch_s),
        "lasted": lasted,
        "then": one.state_after,
    }


def _switched(before_s: float) -> str:
    return f"{span(before_s)} before" if before_s >= 0 else f"{span(before_s)} late"


def _often(found: Backtest, seen: Sequence[Mark]) -> Iterator[str]:
    days = stream_days(found)
    first, last = min(one.first_block_at for one in found.streams), max(one.last_block_at for one in found.streams)
    yield f"streams: {len(found.streams)}, judged for {days:.2f} days together, {moment(first)} to {moment(last)}"
    if not days:
        return
    yield f"recommendations: {len(seen)}, {len(seen) / days:.3g} a stream and day"
    if any(mark.is_false is not None for mark in seen):
        false = sum(bool(mark.is_false) for mark in seen)
        yield f"false by label: {false}, {false / days:.3g} a stream and day"


def _near(found: Backtest, seen: Sequence[Mark]) -> Iterator[str]:
    """How near streams that never acted came to it, the nearest first."""
    fired = {(mark.recommendation.policy, mark.recommendation.segment) for mark in seen}
    quiet = [one for one in found.streams if (one.policy, one.segment) not in fired]
    near = [(stretch.nearest_short, one, stretch) for one in quiet if (stretch := _nearest(one)) and stretch.nearest_short is not None]
    for _, one, stretch in sorted(near, key=lambda told: told[0])[:MOST_NEAR]:
        at = f", at {moment(stretch.nearest_at)}" if stretch.nearest_at else ""
        yield f"never acted: {one.policy} {one.segment}: {stretch.nearest}{at}"
    if len(near) > MOST_NEAR:
        yield f"and {len(near) - MOST_NEAR} streams more that never acted, further from it"


def _nearest(stream: Judged) -> Stretch | None:
    known = [one for one in stream.stretches if one.nearest_short is not None]
    return min(known, key=lambda one: one.nearest_short or 0.0, default=None)


def missed(found: Backtest, unmet: Sequence[Label], unknown: Sequence[Label]) -> Iterator[str]:
    """The labels that no recommendation met, each with why, and those in whose time nothing was judged."""
    for label in unmet:
        yield f"missed: {_label(label)}"
        yield from (f"  {reason}" for reason in why(found, label))
    for label in unknown:
        yield f"not judged: {_label(label)}: no stream of that lever and these keys has blocks in that time"


def _label(label: Label) -> str:
    until = moment(label.until) if label.until else "now"
    return f"{label.lever} {canonical(dict(label.segment))} {moment(label.since)} to {until} {label.note}".rstrip()


def _undecided(streams: Sequence[Judged]) -> Iterator[str]:
    """Streams of which a part could not be told, those with the largest part first."""
    parts = [(sum(one.verdicts.get(verdict, 0) for verdict in UNDECIDED), one) for one in streams]
    told = sorted((part for part in parts if part[0]), key=lambda part: -part[0] / part[1].blocks)
    for number, one in told[:MOST_UNDECIDED]:
        share = f"nothing could be judged in {number} of {one.blocks} blocks"
        yield f"{one.policy} {one.segment}: {share}, mostly for this reason: {one.undecided_reason} ({one.undecided_code})"
    if len(told) > MOST_UNDECIDED:
        yield f"and {len(told) - MOST_UNDECIDED} streams more with blocks in which nothing could be judged"
