"""Rows of `deliveries` in, how a notice stands with each receiver and what was tried out, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboards import theme

_MARKS = {"delivered": ("delivered", "good"), "pending": ("waits", "warn"), "retrying": ("to be tried again", "warn")}
_GIVEN_UP = ("given up", "bad")
_STOPPED = ("refused for good", "bad")


@dataclass(frozen=True)
class Attempt:
    """One attempt, or that one is to come."""

    number: int
    when: str
    words: str


@dataclass(frozen=True)
class Sent:
    """How a notice stands with one receiver; `outcome` as in `deliveries`, `tries` counts attempts, `last` is what was answered last."""

    delivery_id: str
    flip_id: str
    receiver: str
    outcome: str
    words: str
    css: str
    tries: int
    last: str
    upcoming: str
    attempts: list[Attempt]

    @property
    def action(self) -> str:
        """What another sending is called."""
        return "send now" if self.outcome in ("pending", "retrying") else "send again"


def by_flip(rows: Sequence[Mapping[str, Any]], now: datetime, holds: Mapping[str, datetime]) -> dict[str, list[Sent]]:
    """Rows of `page_notice_deliveries` by flip, in the order of receivers; `holds` are until when receivers asked for nothing."""
    attempts: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        attempts.setdefault(row["webhook_id"], []).append(row)
    found: dict[str, list[Sent]] = {}
    for row in rows:
        if row["is_newest"]:
            found.setdefault(row["flip_id"], []).append(sent(row, now, holds, attempts[row["webhook_id"]]))
    return found


def sent(row: Mapping[str, Any], now: datetime, holds: Mapping[str, datetime], tried: Sequence[Mapping[str, Any]] = ()) -> Sent:
    """How the newest row of a notice to a receiver says that it stands."""
    outcome = row["outcome"]
    words, css = _STOPPED if outcome == "gone" else _MARKS.get(outcome, _GIVEN_UP)
    done = [one for one in tried if one["outcome"] != "pending"]
    last = _answer(done[-1] if done else row, now) if done or outcome != "pending" else "not tried yet"
    return Sent(
        row["delivery_id"],
        row["flip_id"],
        row["receiver"],
        outcome,
        words,
        css,
        row["attempt"],
        last,
        _upcoming(row, now, holds.get(row["receiver"])),
        [Attempt(one["attempt"], theme.clock(one["started_at"], now), _answer(one, now)) for one in tried],
    )


def _answer(row: Mapping[str, Any], now: datetime) -> str:
    """`HTTP 503: service unavailable, at 07:30 UTC`."""
    if row["outcome"] == "pending":
        return "waits to be sent"
    status = f"HTTP {row['status_code']}" if row["status_code"] else "taken" if row["outcome"] == "delivered" else "no answer"
    said = f"{status}: {row['error']}" if row["error"] else status
    return f"{said}, at {theme.clock(row['ended_at'] or row['started_at'], now)}"


def _upcoming(row: Mapping[str, Any], now: datetime, held_until: datetime | None) -> str:
    if row["outcome"] not in ("pending", "retrying"):
        return ""
    at = row["next_attempt_at"]
    if held_until and held_until >= (at or now):
        return f"at {theme.clock(held_until, now)}: the receiver asked for nothing before"
    return f"at {theme.clock(at, now)}" if at and at > now else "as soon as may be"
