"""An opened data folder and a period in, what can and cannot be known of the fleet that sends to it out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import polars as pl

from leverwatch import findings
from leverwatch.engine_room import EngineRoom
from leverwatch.findings import Replica, Sampled
from leverwatch.ledger_rows import ledger_rows, pending
from leverwatch.remedies import COLUMNS
from queries import files
from queries.coverage import coverage
from queries.report import moment
from queries.store import Transaction

SINCE = "1h"
LOOK_BACK = timedelta(hours=24)  # how long a replica that serves nothing any more is shown
SCRAPED_LATELY = timedelta(minutes=10)
AHEAD_S, BEHIND_S = 2.0, 60.0
MOST_SCOPES = 20


class Sender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sender's clock: its newest span end against its newest arrival, and what is odd about that; `behind_s` below 0 is ahead."""

    sender: str
    newest_end_at: datetime
    newest_arrival_at: datetime
    behind_s: float
    said: str


class Scrape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scrape target: whether its newest scrape failed, and how."""

    sender: str
    is_failing: bool
    last_scraped_at: datetime | None
    last_failed_at: datetime | None
    reason: str


class Unknown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Spans that no dialect reads, by scope and service."""

    scope: str | None
    service: str | None
    spans: int


class Freshness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How new what is known is: newest event and arrival with their age, and what still waits."""

    newest_event_at: datetime | None
    newest_event_age_s: float | None
    newest_arrival_at: datetime | None
    pending: dict[str, int]
    unassembled: int


class Diagnosis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `doctor` says. `status`: 0, 1 a core metric cannot be computed of a replica with requests, 3 no requests in the period."""

    status: int
    since: datetime
    until: datetime
    now: datetime
    requests: int
    freshness: Freshness
    replicas: list[Replica]
    sampling: list[Sampled]
    unknown: list[Unknown]
    quarantine: list[dict[str, Any]]
    senders: list[Sender]
    scrapes: list[Scrape]
    ledger: list[dict[str, Any]]


def diagnose(room: EngineRoom, since: str | None = None) -> dict[str, Any]:
    """The diagnosis of the period from `since` (an age before the newest event, or a time; one hour) to the newest event, as JSON has it.

    Raises:
        ReportError: `since` is no time.
    """
    now = room.clock()
    with room.store.snapshot() as seen:
        clocks = seen.frame(files.question("doctor_senders"))
        until = clocks["newest_end_at"].max() if len(clocks) else now
        assert isinstance(until, datetime)  # noqa: S101 - Polars types a maximum loosely
        period = {"since": moment(since or SINCE, until), "until": until}
        frames = _frames(seen, **period)
        unassembled = seen.frame("select count(distinct trace_id) as traces from dirty_traces").item()
    found = findings.replicas(frames, now)
    told = Diagnosis(
        status=findings.status(found),
        **period,
        now=now,
        requests=sum(one.requests for one in found),
        freshness=_freshness(clocks, now, pending(room), unassembled),
        replicas=found,
        sampling=[msgspec.convert(row, Sampled) for row in frames["sampling"].to_dicts()],
        unknown=unknown(frames["spans"]),
        quarantine=frames["quarantine"].to_dicts(),
        senders=senders(clocks),
        scrapes=scrapes(frames["scrapes"]),
        ledger=ledger_rows(room, None),
    )
    as_json: dict[str, Any] = msgspec.to_builtins(told)
    return as_json


def senders(clocks: pl.DataFrame) -> list[Sender]:
    """The senders of rows of `doctor_senders`, those with odd clocks first."""
    found = [Sender(**row, said=_clock_said(row["behind_s"])) for row in clocks.to_dicts()]
    return sorted(found, key=lambda one: (not one.said, one.sender))


def scrapes(rows: pl.DataFrame) -> list[Scrape]:
    """The targets of rows of `doctor_scrapes`, those that fail first. A minute with both is one of success."""
    found = [
        Scrape(is_failing=_is_failing(row), reason=(row["reason"] or "") if _is_failing(row) else "", **_without(row, "reason"))
        for row in rows.to_dicts()
    ]
    return sorted(found, key=lambda one: (not one.is_failing, one.sender))


def unknown(spans: pl.DataFrame) -> list[Unknown]:
    """Of rows of `doctor_spans` those that no dialect reads, the most frequent first; what is beyond the first counts as `others`."""
    counts: Counter[tuple[str | None, str | None]] = Counter()
    for row in spans.filter(pl.col("dialect").is_null()).to_dicts():
        counts[row["scope"], row["service"]] += row["spans"]
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    found = [Unknown(scope, service, count) for (scope, service), count in ordered[:MOST_SCOPES]]
    rest = sum(count for _, count in ordered[MOST_SCOPES:])
    return [*found, Unknown("others", None, rest)] if rest else found


def _frames(seen: Transaction, since: datetime, until: datetime) -> dict[str, pl.DataFrame]:
    period = {"since": since, "until": until}
    return {
        "coverage": seen.frame(coverage(COLUMNS, findings.METRICS), period),
        "spans": seen.frame(files.question("doctor_spans"), period),
        "last_seen": seen.frame(files.question("doctor_last_seen"), {"since": since - LOOK_BACK, "until": since}),
        "samples": seen.frame(files.question("doctor_samples"), {"since": max(since, until - SCRAPED_LATELY), "until": until}),
        "sampling": seen.frame(files.question("doctor_sampling"), period),
        "quarantine": seen.frame(files.question("doctor_quarantine"), period),
        "scrapes": seen.frame(files.question("doctor_scrapes")),
    }


def _freshness(clocks: pl.DataFrame, now: datetime, waits: dict[str, int], unassembled: int) -> Freshness:
    ends: Sequence[datetime] = clocks["newest_end_at"].to_list()
    arrivals: Sequence[datetime] = clocks["newest_arrival_at"].to_list()
    newest = max(ends, default=None)
    age_s = round((now - newest).total_seconds(), 3) if newest else None
    return Freshness(newest, age_s, max(arrivals, default=None), waits, unassembled)


def _clock_said(behind_s: float) -> str:
    if behind_s < -AHEAD_S:
        return f"its newest span ends {-behind_s:.0f} s or more after it came: its clock runs ahead"
    if behind_s > BEHIND_S:
        return f"its newest span ended {behind_s:.0f} s before the newest arrival: history, late spans, or a clock that runs behind"
    return ""


def _is_failing(row: Mapping[str, Any]) -> bool:
    failed, scraped = row["last_failed_at"], row["last_scraped_at"]
    return failed is not None and (scraped is None or failed > scraped)


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
