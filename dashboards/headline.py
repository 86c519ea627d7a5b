"""The table's rows in, the page's first sentence out: green only where something was measured and nothing is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dashboards import unjudged
from dashboards.segment_table import Row

JUDGED = ("keep", "disable", "conflicted")
_MOST_REASONS = 3


@dataclass(frozen=True)
class Headline:
    """A sentence, its color, what stands below it, and the segments to name."""

    css: str
    title: str
    text: str
    stopped: list[Row]


def headline(rows: Sequence[Row]) -> Headline:
    """What the verdicts say together, the worst first."""
    said_off = [row for row in rows if row.verdict.name == "disable" or row.verdict.is_off_recommended]
    stopped = [row for row in said_off if not row.verdict.is_shadow]
    judged = [row for row in rows if row in said_off or row.verdict.name in JUDGED]
    others = [row for row in rows if row not in judged]
    beside = " ".join([*([f"{_reasons(others)}."] if others else []), *_in_shadow(len(said_off) - len(stopped))])
    if stopped:
        said = f"{len(others)} more can't be judged: {beside}" if others else beside
        return Headline("bad", f"Speculation stopped paying in {len(stopped)} of {_segments(len(judged), 'judged ')}", said, stopped)
    if not rows:
        return Headline("quiet", "No segment has been judged yet", f"{_needs()} {unjudged.WAITS}", [])
    if conflicting := [row for row in judged if row.verdict.name == "conflicted" and not row.verdict.is_shadow]:
        return Headline("warn", f"The measures conflict in {len(conflicting)} of {_segments(len(judged), 'judged ')}", beside, [])
    if not judged:
        return _nothing_judged(rows)
    title = f"No segment's speculation has stopped paying: {len(judged)} of {_segments(len(rows))} judged"
    is_in_doubt = said_off or any(row.verdict.name == "frozen" for row in others)
    return Headline("warn" if is_in_doubt else "good", title, beside, [])


def _in_shadow(count: int) -> list[str]:
    """What policies in shadow say, and nobody is told."""
    return [f"In shadow, told to nobody: stopped paying in {_segments(count)}."] if count else []


def _nothing_judged(rows: Sequence[Row]) -> Headline:
    frozen = [row for row in rows if row.verdict.name == "frozen"]
    if frozen:
        return Headline("warn", f"Judging is on hold in {len(frozen)} of {_segments(len(rows))}", f"{_reasons(rows)}.", [])
    reasons = _reasons(rows)
    return Headline("quiet", f"0 of {_segments(len(rows))} can be judged: {reasons}", f"{_needs()} {unjudged.WAITS}", [])


def _reasons(rows: Sequence[Row]) -> str:
    """Why segments are not judged, the most common first."""
    counts = Counter(row.verdict.lacks for row in rows).most_common()
    said = [f"{words} ({count})" if len(counts) > 1 else words for words, count in counts[:_MOST_REASONS]]
    return ", ".join([*said, *(["and others"] if len(counts) > _MOST_REASONS else [])])


def _segments(count: int, kind: str = "") -> str:
    return f"{count} {kind}segment{'' if count == 1 else 's'}"


def _needs() -> str:
    return (
        "A verdict needs closed blocks of requests, and a control arm (leverwatch.arm.speculation = control on some replicas) "
        "to compare with."
    )
