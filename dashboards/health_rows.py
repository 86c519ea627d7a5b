"""What the API says of ledger, senders, values set aside and storage in, the same for reading out, what is wrong first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from dashboards import theme
from dashboards.health_problems import OUTCOMES, difference, moment

SHOWN_DROPS = 12
Row = dict[str, Any]  # as JSON and frames give them
Shown = dict[str, Any]


def ledger(rows: Sequence[Row]) -> list[Shown]:
    """One row per sender and signal, with the items that are not accounted for as `gap`; those that lost something first."""
    found = [{**row, "gap": difference(row), "why": [(one["reason"], one["items"]) for one in row["reasons"]]} for row in rows]
    return sorted(found, key=lambda row: (not row["gap"], -(row["rejected"] + row["dropped"]), row["signal"], row["sender"]))


def sums(rows: Sequence[Row]) -> Shown:
    """The ledger of everybody together."""
    names = ("received", *OUTCOMES)
    return {name: sum(int(row[name]) for row in rows) for name in names}


def senders(rows: Sequence[Row], now: datetime) -> list[Shown]:
    """Each sender's newest data and clock; odd clocks first, then the oldest."""
    return [
        row | _seen(row, now, newest_end="newest_end_at", arrival="newest_arrival_at") | {"clock": _clock(row["behind_s"])} for row in rows
    ]


def scrapes(rows: Sequence[Row], now: datetime) -> list[Shown]:
    """Each scrape target, those that fail first."""
    return [row | _seen(row, now, scraped="last_scraped_at", failed="last_failed_at") for row in rows]


def quarantine(rows: Sequence[Row], examples: Sequence[Row], now: datetime) -> list[Shown]:
    """The values set aside by column and reason, each with its newest examples."""
    found: dict[tuple[str, str], list[Shown]] = {}
    for row in examples:
        address = f"request?{urlencode({'id': row['request_id'] or row['trace_id'], 'at': row['started_at'].isoformat()})}"
        shown = {"value": str(row["value"])[:40], "replica": row["replica"], "url": address, "when": theme.clock(row["started_at"], now)}
        found.setdefault((row["column"], row["reason"]), []).append(shown)
    return [row | {"examples": found.get((row["column"], row["reason"]), [])} for row in rows]


def holdings(rows: Sequence[Row], ages: Mapping[str, str], now: datetime) -> list[Shown]:
    """What each relation and folder holds, how far back, and how long it stays."""
    return [
        row
        | _seen(row | {"newest": _capped(row["newest"], now)}, now, oldest="oldest", newest="newest")
        | {"size": theme.size(row["bytes"]), "stays": ages.get(row["relation"]) or ("forever" if row["relation"] in ages else "–")}
        for row in rows
    ]


def dropped(rows: Sequence[Row], now: datetime) -> list[Shown]:
    """What retention dropped, the newest first."""
    return [
        row | _seen(row, now, since="since", until="until", dropped="dropped_at") | {"size": theme.size(row["bytes"] or 0)}
        for row in rows[:SHOWN_DROPS]
    ]


def _seen(row: Row, now: datetime, **names: str) -> Shown:
    """Times of a row in words, as `<name>_words`."""
    times = {name: moment(row[column]) for name, column in names.items()}
    return {f"{name}_words": "–" if at is None else theme.clock(at, now) for name, at in times.items()}


def _capped(newest: str | None, now: datetime) -> datetime | None:
    """A part says when its hour ends, which may lie ahead."""
    at = moment(newest)
    return at if at is None else min(at, now)


def _clock(behind_s: float) -> str:
    return f"{theme.age(-behind_s)} ahead" if behind_s < 0 else f"{theme.age(behind_s)} before it came"
