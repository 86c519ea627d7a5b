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
    waits, lacks = Counter(waiting), _lacks(others)
    beside = f"Not judged: {_reasons(lacks, waits)}." if lacks or waits else ""
    if len(bad):
        named = [standing.stream(row, now) for row in bad.head(SHOWN).iter_rows(named=True)]
        return Headline("bad", _stopped(bad, judged), beside, named, len(bad))
    if told.is_empty():
        return _nothing_told(waits)
    if conflicting := int((judged["verdict"] == "conflicted").sum()):
        return Headline("warn", f"The measures conflict in {conflicting} of {_many(len(judged), 'judged stream')}", beside, [])
    frozen = int((others["verdict"] == "frozen").sum())
    if judged.is_empty():
        return _nothing_judged(len(told), lacks, waits, frozen)
    title = f"No lever has stopped paying: {len(judged)} of {_many(len(told), 'stream')} judged"
    return Headline("warn" if frozen else "good", title, beside, [])


def _stopped(bad: pl.DataFrame, judged: pl.DataFrame) -> str:
    """`Speculation stopped paying in 1 of 2 segments where it is judged`, or each lever with its segments."""
    counts = bad.group_by("lever").agg(pl.col("segment").n_unique()).sort("segment", "lever", descending=[True, False]).rows()
    of = dict(judged.group_by("lever").agg(pl.col("segment").n_unique()).iter_rows())
    if len(counts) == 1:
        lever, n = counts[0]
        return f"{theme.upfirst(standing.words(lever))} stopped paying in {n} of {_many(of[lever], 'segment')} where it is judged"
    named = [f"{standing.words(lever)} in {n} of {_many(of[lever], 'segment')}" for lever, n in counts]
    return f"{len(counts)} levers stopped paying: {', '.join(named)}"


def _nothing_told(waits: Counter[str]) -> Headline:
    """Where no policy has said anything: of segments alone."""
    if not waits:
        return Headline("quiet", "No segment has been judged yet", f"{_needs()} {unjudged.WAITS}", [])
    title = f"0 of {_many(waits.total(), 'segment')} can be judged: {_listed(waits)}"
    return Headline("quiet", title, f"{_needs()} {unjudged.WAITS}", [])


def _nothing_judged(streams: int, lacks: Counter[str], waits: Counter[str], frozen: int) -> Headline:
    if frozen:
        return Headline("warn", f"Judging is on hold in {frozen} of {_many(streams, 'stream')}", f"{_reasons(lacks, waits)}.", [])
    title = f"0 of {_many(streams, 'stream')} can be judged: {_listed(lacks)}"
    beside = f"Not judged either: {_reasons(Counter(), waits)}. " if waits else ""
    return Headline("quiet", title, f"{beside}{_needs()} {unjudged.WAITS}", [])


def _lacks(others: pl.DataFrame) -> Counter[str]:
    """What keeps streams from being judged, and how many of them."""
    pairs = others.group_by("verdict", "reason_code").len().sort("len", "verdict", "reason_code", descending=[True, False, False])
    return Counter({theme.badge(verdict, code)[0]: n for verdict, code, n in reversed(pairs.rows())})


def _reasons(lacks: Counter[str], waits: Counter[str]) -> str:
    """Why streams are not judged, then why segments have none: `7 streams (no control arm); 2 segments (no arm marked)`."""
    both = (("stream", lacks), ("segment", waits))
    return "; ".join(f"{_many(counts.total(), what)} ({_listed(counts)})" for what, counts in both if counts)


def _listed(counts: Counter[str]) -> str:
    """The most common reasons."""
    common = counts.most_common()
    said = [f"{words}: {count}" if len(common) > 1 else words for words, count in common[:_MOST_REASONS]]
    return ", ".join([*said, *(["and others"] if len(common) > _MOST_REASONS else [])])


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _needs() -> str:
    return (
        "A verdict needs closed blocks of requests, and a control arm (such as leverwatch.arm.speculation = control on some replicas) "
        "to compare with."
    )
