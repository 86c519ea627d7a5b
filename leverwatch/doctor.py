"""An opened data folder and a period in, what can and cannot be known of the fleet that sends to it out, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import polars as pl

from leverwatch import findings
from leverwatch.diagnosis import Diagnosis, Freshness, Sampled, Scrape, Sender, Unknown
from leverwatch.engine_room import EngineRoom
from leverwatch.ledger_rows import ledger_rows, pending
from leverwatch.remedies import COLUMNS, said_of_one
from pipeline.gauges import TOLERANCE_S
from pipeline.traps import link
from queries import files, ranged
from queries.coverage import coverage
from queries.report import moment
from queries.store import Transaction

SINCE = "1h"
MOST_REQUESTS = 1_000_000  # that are looked at where nobody names a period: 1.5 s of processor; an hour may hold 70 times as many
LOOK_BACK = timedelta(hours=6)  # before the period: how long a replica that serves nothing any more is shown
SCRAPED_LATELY = timedelta(minutes=10)
TRIED_LATELY = timedelta(hours=1)
AHEAD_S, BEHIND_S = 2.0, 60.0
MOST_SCOPES = 20
RECORDED = "load:"  # what such a sender sends was recorded: it is late by nature


def diagnose(room: EngineRoom, since: str | None = None) -> dict[str, Any]:
    """The diagnosis of the period from `since` (an age before the newest event, or a time) to the newest event, as JSON has it.

    Without `since` it is one hour, or the newest `MOST_REQUESTS` where an hour holds more.

    Raises:
        ReportError: `since` is no time.
    """
    now = room.clock()
    with room.store.snapshot() as seen:
        clocks = seen.frame(files.question("doctor_senders"))
        until = clocks["newest_end_at"].max() if len(clocks) else now
        assert isinstance(until, datetime)  # noqa: S101 - Polars types a maximum loosely
        period = {"since": moment(since, until) if since else _began(seen, until), "until": until}
        frames = _frames(seen, **period)
        unassembled = seen.frame("select count(distinct trace_id) as traces from dirty_traces").item()
    found = findings.replicas(frames, now)
    told = Diagnosis(
        status=findings.status(found),
        **period,
        now=now,
        requests=sum(one.requests + one.unserved for one in found),
        freshness=_freshness(clocks, now, pending(room), unassembled),
        replicas=found,
        sampling=[msgspec.convert(row, Sampled) for row in frames["sampling"].to_dicts()],
        unknown=unknown(frames["unknown"]),
        quarantine=with_links(frames["quarantine"]),
        suspicions=with_links(frames["suspicions"]),
        control=frames["control"].to_dicts(),
        late_samples=frames["late_samples"].to_dicts(),
        senders=senders(clocks),
        scrapes=scrapes(frames["scrapes"]),
        ledger=ledger_rows(room, None),
    )
    as_json: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(told))
    return as_json


def _began(seen: Transaction, until: datetime) -> datetime:
    hour_ago = moment(SINCE, until)
    newest = ranged.newest_since(seen, "requests", MOST_REQUESTS)
    return hour_ago if newest is None else min(max(hour_ago, newest), until)


def senders(clocks: pl.DataFrame) -> list[Sender]:
    """The senders of rows of `doctor_senders`, those with odd clocks first."""
    found = [Sender(**row, said=_clock_said(row["sender"], row["behind_s"])) for row in clocks.to_dicts()]
    return sorted(found, key=lambda one: (not one.said, one.sender))


def scrapes(rows: pl.DataFrame) -> list[Scrape]:
    """The targets of rows of `doctor_scrapes`, those that fail first. One that was not tried for an hour is no target any more."""
    tried = [moment for name in ("last_failed_at", "last_scraped_at") for moment in rows[name].drop_nulls().to_list()]
    lately = max(tried) - TRIED_LATELY if tried else None
    found = []
    for row in rows.to_dicts():
        fails = _is_failing(row, lately)
        found.append(Scrape(is_failing=fails, reason=(row["reason"] or "") if fails else "", **_without(row, "reason")))
    return sorted(found, key=lambda one: (not one.is_failing, one.sender))


def with_links(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows that name an upstream issue, with its address as `link`, where it has one."""
    return [row | {"link": link(row["upstream"] or "") or None} for row in rows.to_dicts()]


def unknown(rows: pl.DataFrame) -> list[Unknown]:
    """The scopes of rows of `doctor_unknown`, and as `others` the spans of all scopes beyond them."""
    found = [Unknown(**_without(row, "of_all")) for row in rows.to_dicts()]
    rest = rows["of_all"].item(0) - rows["spans"].sum() if found else 0
    return [*found, Unknown("others", None, rest)] if rest else found


def _frames(seen: Transaction, since: datetime, until: datetime) -> dict[str, pl.DataFrame]:
    period = {"since": since, "until": until}
    return {
        "coverage": seen.frame(coverage(COLUMNS, findings.METRICS, said_of_one()), period),
        "marks": seen.frame(files.question("doctor_marks"), period),
        "spans": seen.frame(files.question("doctor_spans"), period),
        "unknown": seen.frame(files.question("doctor_unknown"), period | {"limit_rows": MOST_SCOPES}),
        "last_seen": seen.frame(files.question("doctor_last_seen"), {"since": since - LOOK_BACK, "until": since}),
        "samples": seen.frame(files.question("doctor_samples"), {"since": max(since, until - SCRAPED_LATELY), "until": until}),
        "sampling": seen.frame(files.question("doctor_sampling"), period),
        "quarantine": seen.frame(files.question("doctor_quarantine"), period),
        "suspicions": seen.frame(files.question("doctor_suspicions"), period),
        "scrapes": seen.frame(files.question("doctor_scrapes")),
        "control": seen.frame(files.question("doctor_control"), period),
        "late_samples": seen.frame(files.question("doctor_late_samples"), period | {"tolerance_s": TOLERANCE_S}),
    }


def _freshness(clocks: pl.DataFrame, now: datetime, waits: dict[str, int], unassembled: int) -> Freshness:
    ends: Sequence[datetime] = clocks["newest_end_at"].to_list()
    arrivals: Sequence[datetime] = clocks["newest_arrival_at"].to_list()
    newest = max(ends, default=None)
    age_s = round((now - newest).total_seconds(), 3) if newest else None
    return Freshness(newest, age_s, max(arrivals, default=None), waits, unassembled)


def _clock_said(sender: str, behind_s: float) -> str:
    if behind_s < -AHEAD_S:
        return f"its newest span ends {-behind_s:.0f} s or more after it came: its clock runs ahead"
    if behind_s > BEHIND_S and not sender.startswith(RECORDED):
        return f"its newest span ended {behind_s:.0f} s before the newest arrival: history, late spans, or a clock that runs behind"
    return ""


def _is_failing(row: Mapping[str, Any], lately: datetime | None) -> bool:
    """Whether the newest scrape failed. A minute with both is one of success."""
    failed, scraped = row["last_failed_at"], row["last_scraped_at"]
    return failed is not None and (lately is None or failed >= lately) and (scraped is None or failed > scraped)


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
