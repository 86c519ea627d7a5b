"""Where streams stand in, the page's first sentence out: green only where something was measured and nothing is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from dashboards import standing, theme, unjudged
from dashboards.standing import JUDGED, Stream

_MOST_REASONS = 3
SHOWN = 5


@dataclass(frozen=True)
class Headline:
    """A sentence, its color, what stands below it, the first streams to name, and how many there are of them."""

    css: str
    title: str
    text: str
    stopped: list[Stream]
    stopped_n: int = 0


def headline(streams: pl.DataFrame, waiting: Sequence[str], now: datetime) -> Headline:
    """What the verdicts say together, the worst first. `waiting` says of each segment without any verdict what it waits for."""
    told = streams.filter(~pl.col("shadow"))
    bad = told.filter(standing.stopped()).sort("gain", nulls_last=True)
    is_judged = standing.stopped() | pl.col("verdict").is_in(JUDGED)
    judged, others = told.filter(is_judged), told.filter(~is_judged)
    lacks = Counter(waiting) + _lacks(others)
    beside = f"{_reasons(lacks)}." if lacks else ""
    if len(bad):
        said = f"{lacks.total()} more can't be judged: {beside}" if lacks else ""
        named = [standing.stream(row, now) for row in bad.head(SHOWN).iter_rows(named=True)]
        return Headline("bad", _stopped(bad, len(judged)), said, named, len(bad))
    if not lacks and judged.is_empty():
        return Headline("quiet", "No segment has been judged yet", f"{_needs()} {unjudged.WAITS}", [])
    if conflicting := int((judged["verdict"] == "conflicted").sum()):
        return Headline("warn", f"The measures conflict in {conflicting} of {_segments(len(judged), 'judged ')}", beside, [])
    frozen = int((others["verdict"] == "frozen").sum())
    if judged.is_empty():
        return _nothing_judged(lacks, frozen)
    title = f"No lever has stopped paying: {len(judged)} of {_segments(len(judged) + lacks.total())} judged"
    return Headline("warn" if frozen else "good", title, beside, [])


def _stopped(bad: pl.DataFrame, judged: int) -> str:
    """`Speculation stopped paying in 1 of 2 judged segments`, or the levers with how often each."""
    counts = bad.group_by("lever").len().sort("len", "lever", descending=[True, False]).rows()
    named = [f"{standing.words(lever)} in {n}" for lever, n in counts]
    if len(counts) == 1:
        return f"{theme.upfirst(standing.words(counts[0][0]))} stopped paying in {len(bad)} of {_segments(judged, 'judged ')}"
    return f"{len(counts)} levers stopped paying, in {len(bad)} of {_segments(judged, 'judged ')}: {', '.join(named)}"


def _nothing_judged(lacks: Counter[str], frozen: int) -> Headline:
    if frozen:
        return Headline("warn", f"Judging is on hold in {frozen} of {_segments(lacks.total())}", f"{_reasons(lacks)}.", [])
    title = f"0 of {_segments(lacks.total())} can be judged: {_reasons(lacks)}"
    return Headline("quiet", title, f"{_needs()} {unjudged.WAITS}", [])


def _lacks(others: pl.DataFrame) -> Counter[str]:
    """What keeps streams from being judged, and how many of them."""
    pairs = others.group_by("verdict", "reason_code").len().sort("len", "verdict", "reason_code", descending=[True, False, False])
    return Counter({theme.badge(verdict, code)[0]: n for verdict, code, n in reversed(pairs.rows())})


def _reasons(counts: Counter[str]) -> str:
    """Why segments are not judged, the most common first."""
    common = counts.most_common()
    said = [f"{words} ({count})" if len(common) > 1 else words for words, count in common[:_MOST_REASONS]]
    return ", ".join([*said, *(["and others"] if len(common) > _MOST_REASONS else [])])


def _segments(count: int, kind: str = "") -> str:
    return f"{count} {kind}segment{'' if count == 1 else 's'}"


def _needs() -> str:
    return (
        "A verdict needs closed blocks of requests, and a control arm (such as leverwatch.arm.speculation = control on some replicas) "
        "to compare with."
    )
