"""Alertmanager: letters and what still stands in, pushes to its API v2 out, again every minute while a recommendation lasts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from alerts import alert_rows, canonical, notice_types
from alerts.alert_rows import Alert
from alerts.channels import DeliveryError, Letter, Route, Sent, accepted, post
from alerts.payload import Message
from queries import files
from queries.store import Store

EVERY = timedelta(minutes=1)
LIMIT_ALERTS = 500  # in one push: a few hundred kB
_PUSHED = {
    "receiver": pl.String(),
    "pushed_at": pl.Datetime("us", "UTC"),
    "alerts": pl.Int64(),
    "status_code": pl.Int64(),
    "error": pl.String(),
}


def send(route: Route, letters: Sequence[Letter], now: datetime) -> Sent:
    """Pushes what the letters open, replace and end.

    Raises:
        DeliveryError: no answer, or one other than 2xx.
    """
    return push(route, [alert for letter in letters for alert in alert_rows.alerts(letter, now)], now)


def push(route: Route, alerts: Sequence[Alert], now: datetime) -> Sent:
    """Posts alerts, 500 at a time.

    Raises:
        DeliveryError: no answer, or one other than 2xx.
    """
    url = f"{(route.receiver.url or '').rstrip('/').removesuffix('/api/v2/alerts')}/api/v2/alerts"
    user, sent = route.receiver.username, Sent()
    auth = (user, route.secret_now()) if user is not None else None
    for start in range(0, len(alerts), LIMIT_ALERTS):
        body = canonical.text(list(alerts[start : start + LIMIT_ALERTS]))
        answer = post(route, url, body.encode(), {}, auth, listens=True)
        sent = accepted(answer, now, said=answer.said)
    return sent


def push_again(store: Store, route: Route, now: datetime) -> datetime | None:
    """Pushes what the receiver was told of and what still stands, where a minute has gone by; gives when to do so again.

    A recommendation whose data is frozen still stands, and says so. Where Alertmanager cannot be reached the next minute tries again.
    """
    name = route.receiver.name
    last = store.rows("select pushed_at from alert_pushes where receiver = $receiver", {"receiver": name})
    due = last[0]["pushed_at"] + EVERY if last else now
    if now < due <= now + EVERY:  # else a clock that was set back would hold it up
        return due
    rows = store.rows(files.question("alertmanager_standing"), {"receiver": name})
    if not rows:
        return None
    alerts, status, error = [_standing(row, now) for row in rows], None, None
    try:
        status = push(route, alerts, now).status_code
    except DeliveryError as failed:
        status, error = failed.status_code, str(failed)
    _note(store, {"receiver": name, "pushed_at": now, "alerts": len(alerts), "status_code": status, "error": error})
    return now + EVERY


def opened(store: Store, flip_id: str, receiver: str) -> Message | None:
    """What the receiver was told of a flip's stream before, where that has not ended yet."""
    rows = store.rows(files.question("alertmanager_opened"), {"flip_id": flip_id, "receiver": receiver})
    found = _message(rows[0]) if rows else None
    return found if found and found.type in notice_types.OPENING else None


def _standing(row: Any, now: datetime) -> Alert:
    message = _message(row)
    said = f"{row['verdict']}: {row['reason_now']}" if row["verdict"] in ("frozen", "conflicted") else row["reason_now"]
    return alert_rows.firing(message, now, said)


def _message(row: Any) -> Message:
    return Message(notice_types.type_of(row["state_after"], row["action"]), row["decided_at"], json.loads(row["notice"]))


def _note(store: Store, row: dict[str, Any]) -> None:
    with store.write() as transaction:
        transaction.execute("delete from alert_pushes where receiver = $receiver", {"receiver": row["receiver"]})
        transaction.insert("alert_pushes", pl.DataFrame([row], schema=_PUSHED))
