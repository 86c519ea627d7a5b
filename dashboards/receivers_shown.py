"""Receivers that are configured and rows of what they were sent in, how each does out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboards import theme
from dashboards.reader import Reader
from queries import files

LATE_BEATS = 3  # an alarm on a heartbeat waits for as many of its periods


@dataclass(frozen=True)
class ReceiverShown:
    """One receiver: what waits for it, what was given up, and when something last got through. The worst say so in `css`."""

    name: str
    kind: str
    waiting: int
    given_up: int
    delivered: str
    heartbeat: str
    heartbeat_css: str
    test: str
    pushed: str
    held_until: datetime | None
    trouble: str
    css: str
    is_configured: bool


def receivers(reader: Reader, configured: Sequence[Mapping[str, Any]] | None, now: datetime) -> list[ReceiverShown]:
    """Those configured (null: not known), and those that something was ever sent to; the worst first."""
    rows = {row["receiver"]: row for row in reader.frame(files.question("list_receivers"), {"now": now}).iter_rows(named=True)}
    tests = {row["receiver"]: row for row in reader.frame(files.question("page_receiver_tests")).iter_rows(named=True)}
    own = {one["name"]: one for one in configured or ()}
    names = [*own, *sorted({*rows, *tests} - own.keys())]
    found = [_shown(name, own.get(name), rows.get(name, {}), tests.get(name, {}), now, configured is None) for name in names]
    return sorted(found, key=lambda one: ("bad", "warn", "good", "quiet").index(one.css))


def _shown(
    name: str, own: Mapping[str, Any] | None, row: Mapping[str, Any], test: Mapping[str, Any], now: datetime, is_unknown: bool
) -> ReceiverShown:
    delivered_at, waiting, given_up = row.get("delivered_at"), row.get("waiting", 0), row.get("given_up", 0)
    heartbeat, heartbeat_css = _heartbeat(own, row, now)
    is_configured = is_unknown or own is not None
    trouble = _trouble(row, is_configured, now)
    is_bad = bool(given_up or row.get("is_stopped") or heartbeat_css == "bad" or test.get("push_error"))
    css = "quiet" if not is_configured else "bad" if is_bad else "warn" if waiting else "good" if delivered_at else "quiet"
    return ReceiverShown(
        name,
        own["kind"] if own else "",
        waiting,
        given_up,
        _ago(delivered_at, now) if delivered_at else "nothing yet",
        heartbeat,
        heartbeat_css,
        _test(test, now),
        _pushed(test, now),
        row.get("held_until"),
        trouble,
        css,
        is_configured,
    )


def _trouble(row: Mapping[str, Any], is_configured: bool, now: datetime) -> str:
    if not is_configured:
        return "not configured any more: nothing is sent to it"
    if row.get("is_stopped"):
        return "answered 410 Gone: it gets nothing until a test or a notice sent again gets through"
    held_until = row.get("held_until")
    return f"asked for nothing before {theme.clock(held_until, now)} (Retry-After): what waits goes out then" if held_until else ""


def _heartbeat(own: Mapping[str, Any] | None, row: Mapping[str, Any], now: datetime) -> tuple[str, str]:
    every_s, at = (own or {}).get("heartbeat_s"), row.get("heartbeat_at")
    if at is None:
        return (f"none yet, one every {theme.age(every_s)} is asked for", "warn") if every_s else ("not asked for", "quiet")
    if row["heartbeat_outcome"] != "delivered":
        return f"failed {_ago(at, now)}: {row['heartbeat_error'] or row['heartbeat_outcome']}", "bad"
    is_late = every_s is not None and (now - at).total_seconds() > LATE_BEATS * every_s
    return f"{_ago(at, now)}" + (", late: judging may stand still" if is_late else ""), "bad" if is_late else "good"


def _test(row: Mapping[str, Any], now: datetime) -> str:
    if not row.get("test_outcome"):
        return ""
    said = "got through" if row["test_outcome"] == "delivered" else row["test_outcome"]
    why = f" ({row['test_error']})" if row["test_error"] else ""
    return f"test {said} {_ago(row['tested_at'], now)}{why}"


def _pushed(row: Mapping[str, Any], now: datetime) -> str:
    if not row.get("pushed_at"):
        return ""
    why = f", failed: {row['push_error']}" if row["push_error"] else ""
    return f"{theme.count(row['pushed_alerts'])} standing alerts pushed {_ago(row['pushed_at'], now)}{why}"


def _ago(at: datetime, now: datetime) -> str:
    return f"{theme.age((now - at).total_seconds())} ago"
