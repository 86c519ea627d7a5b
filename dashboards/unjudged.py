"""Segments without a verdict in, what each waits for out, in words that say what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dashboards.choice import KEYS
from pipeline.segments import canonical

BLOCK = timedelta(minutes=5)
WINDOW_BLOCKS = 24
WAITS = "A block is 5 minutes of traffic. It is judged once the data is 2 minutes past its end."
SHOWS_AFTER = f"Judged over the last {WINDOW_BLOCKS} blocks of 5 minutes, so a change shows after one to two hours."


@dataclass(frozen=True)
class Why:
    """What a segment waits for: for the headline, and with what to do about it."""

    short: str
    text: str


NO_KEY = Why("no key known", "no key of a segment is known: set leverwatch.model")
OLDER = Why("older than what is judged", "older than what is judged: load it into a folder of its own")
OPEN = Why("its first block is still open", f"its first block is still open. {WAITS}")
UNKNOWN = Why("no verdict yet", "no verdict has been written for this segment")


def whys(marks: Iterable[Mapping[str, Any]], lever: str) -> dict[str, Why]:
    """Per segment, as canonical text, what keeps it from a first verdict; rows are those of `page_marks`."""
    return {canonical({key: row[key] for key in KEYS}): _why(row, lever) for row in marks}


def _why(row: Mapping[str, Any], lever: str) -> Why:
    if not row["marked"]:
        return Why("no arm marked", f"no arm marked: set leverwatch.arm.{lever}")
    if not any(row[key] for key in KEYS):
        return NO_KEY
    judged_until: datetime | None = row["judged_until"]
    if judged_until is None or row["newest_at"] >= judged_until:
        return OPEN
    return OLDER
