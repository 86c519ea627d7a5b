"""What has been stored and how old the newest data is, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboards import theme
from dashboards.reader import Reader
from queries import files

FRESH_S = 60.0
BEHIND_S = 900.0
WHERE_TO_SEND = "send OTLP traces to the addresses that leverwatch serve printed (gRPC on port 4317, HTTP on 4318, unless told otherwise)"


@dataclass(frozen=True)
class Arriving:
    """Stored spans, those of the last minute, requests, the newest span end seen, and when anything last came (None: nothing came yet)."""

    spans: int
    spans_last_minute: int
    requests: int
    senders: int
    newest_at: datetime | None
    now: datetime
    seen_at: datetime | None = None

    @property
    def age_s(self) -> float | None:
        """Seconds between now and the newest data."""
        return None if self.newest_at is None else (self.now - self.newest_at).total_seconds()

    @property
    def age(self) -> str:
        """The age of the newest data in words."""
        return "no data" if self.age_s is None else theme.age(self.age_s)

    @property
    def is_loading(self) -> bool:
        """Whether what ended long ago is on its way right now: history, that is, and no sender that fell silent."""
        return is_loading(self.newest_at, self.seen_at, self.now)

    @property
    def css(self) -> str:
        """How fresh the data is: good, warn or bad; quiet while history comes."""
        if self.age_s is None:
            return "warn"
        if self.age_s > BEHIND_S:
            return "quiet" if self.is_loading else "bad"
        return "good" if self.age_s <= FRESH_S else "warn"

    @property
    def words(self) -> str:
        """What the age means."""
        if self.newest_at is None:
            return f"nothing has arrived yet: {WHERE_TO_SEND}"
        if self.css == "good":
            return f"live: spans end {self.age} ago at the newest"
        at = theme.clock(self.newest_at, self.now)
        if self.is_loading:
            return f"history is loading, so far up to {at}"
        return f"behind: the newest span ended at {at}" if self.css == "warn" else f"stale: nothing newer than {at} has arrived"

    @property
    def until(self) -> datetime:
        """Where a page's period ends: at the newest data, and never later than now."""
        return _end(self.newest_at, self.now)


def arriving(reader: Reader, now: datetime) -> Arriving:
    """Asks the store."""
    row = reader.frame(files.question("page_arriving"), {"minute_ago": now - timedelta(minutes=1)}).row(0, named=True)
    return Arriving(row["spans"], row["spans_last_minute"], row["requests"], row["senders"], row["newest_at"], now, row["seen_at"])


def is_loading(newest_at: datetime | None, seen_at: datetime | None, now: datetime) -> bool:
    """Whether the newest data ended long ago while data came within the last minute."""
    if newest_at is None or seen_at is None:
        return False
    return (now - newest_at).total_seconds() > BEHIND_S and (now - seen_at).total_seconds() <= FRESH_S


def newest(reader: Reader, now: datetime) -> datetime:
    """Where a page's period ends, for pages that show nothing else of what arrives."""
    newest_at: datetime | None = reader.frame(files.question("page_newest")).item()
    return _end(newest_at, now)


def _end(newest_at: datetime | None, now: datetime) -> datetime:
    return now if newest_at is None else min(now, newest_at + timedelta(seconds=1))
