"""Segments without a verdict in, what each waits for out, in words that say what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dashboards.reader import Reader
from pipeline.segments import JUDGING_KEYS, canonical
from queries import files

RECENT = timedelta(minutes=15)
WINDOW_BLOCKS = 24
WAITS = "A block is 5 min of traffic. It is judged once the data is 2 min past its end."
SHOWS_AFTER = f"Judged over the last {WINDOW_BLOCKS} blocks of 5 min, so a change shows after one to two hours."


@dataclass(frozen=True)
class Why:
    """What a segment waits for: for the headline, and with what to do about it."""

    short: str
    text: str


NO_KEY = Why("no key known", "no key of a segment is known: set leverwatch.model")
OLDER = Why("being judged", "being judged: history that came late is worked through block by block")
OPEN = Why("its first block is still open", f"its first block is still open. {WAITS}")
BEHIND = Why("being measured", "being measured: what arrived is not worked through yet")
UNKNOWN = Why("no verdict yet", "no verdict has been written for this segment")


def whys(reader: Reader, segments: Sequence[str], since: datetime, until: datetime, lever: str = "<lever>") -> dict[str, Why]:
    """Per segment, as canonical text of its judging keys, what keeps it from a first verdict.

    Marks are looked for in what was measured and in the newest requests: in all of them it would take longer than the page.
    """
    recent = max(since, until - RECENT)
    newest = {_segment(row): row["newest_at"] for row in _rows(reader, "page_measured", {"since": since, "until": until})}
    for row in _rows(reader, "page_marks", {"since": recent, "until": until}):
        if row["is_marked"]:
            newest[_segment(row)] = row["newest_at"]
    progress = _rows(reader, "page_progress", {"recent": recent})[0]
    return {segment: why(segment, lever, newest.get(segment), **progress) for segment in segments}


def _segment(row: Mapping[str, Any]) -> str:
    return canonical({key: row[key] for key in JUDGING_KEYS})


def why(segment: str, lever: str, newest_at: datetime | None, judged_until: datetime | None, is_behind: bool) -> Why:
    """What one segment waits for; `newest_at` is when the newest of its marked requests began, None where none is known."""
    if segment == "{}":
        return NO_KEY
    if newest_at is None:
        return BEHIND if is_behind else Why("no arm marked", f"no arm marked: set leverwatch.arm.{lever}")
    return OPEN if judged_until is None or newest_at >= judged_until else OLDER


def _rows(reader: Reader, question: str, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    return reader.frame(files.question(question), asked).to_dicts()
