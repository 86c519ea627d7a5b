"""Alertmanager's alerts: letters in, alerts of its API v2 and the body of its webhooks (version 4) out.

An alert is known by its labels. They come from the notice that opened it, also when it ends: lever, policy, segment and severity.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from alerts import canonical, notice_text, notice_urgency, wording
from alerts.channels import Letter
from alerts.notice_types import OPENING
from alerts.payload import Message

HOLDS = timedelta(minutes=15)
"""How long Alertmanager keeps an alert that is not pushed again; each push moves its end."""
NAMES = {
    "lever.disable": "LeverDisable",
    "lever.adjust": "LeverAdjust",
    "lever.enable": "LeverEnable",
    "lever.widen": "LeverWiden",
    "lever.resolved": "LeverResolved",
    "evaluator.heartbeat": "LeverwatchHeartbeat",
    "test": "LeverwatchTest",
}
_NEVER = "0001-01-01T00:00:00Z"  # what Alertmanager writes for an alert without an end
_LIMIT_TEXT = 1000  # a webhook stays below 20 kB, in which most texts stand twice
_OFFSET, _PRIME, _END = 14695981039346656037, 1099511628211, 255

Alert = dict[str, Any]


def alerts(letter: Letter, now: datetime) -> list[Alert]:
    """The alerts of a letter: the one that it ends or replaces, with an end, and the one that it opens, which holds for 15 minutes."""
    message, opened = letter.message, letter.opened
    is_over = message.type == "lever.resolved"
    found = [] if is_over else [firing(message, now)]
    if is_over and opened is None:
        opened = message
    if opened is not None and not (found and labels(opened) == labels(message)):
        found.insert(0, ended(opened, message, now))
    return found


def firing(message: Message, now: datetime, description: str | None = None) -> Alert:
    """An alert that stands; `description` is what is said of it now, in the place of what was said when it was decided."""
    starts_at = min(message.timestamp, now)
    ends_at = _widened_until(message) or now + HOLDS
    return _alert(message, starts_at, max(ends_at, starts_at), description)


def ended(opened: Message, message: Message, now: datetime) -> Alert:
    """The alert of a notice that another one ended."""
    starts_at = min(opened.timestamp, now)
    ends_at = min(max(message.timestamp, starts_at), now)
    return _alert(opened, starts_at, ends_at, notice_text.reason(message))


def labels(message: Message) -> dict[str, str]:
    """What an alert is known by; empty values are none to Alertmanager."""
    data = message.data
    named = {"alertname": NAMES[message.type], "lever": data.get("lever"), "policy": data.get("policy"), "severity": data.get("severity")}
    keys = {**named, "action": data.get("action") if message.type in OPENING else None, **(data.get("segment") or {})}
    found = {key: str(value) for key, value in keys.items() if value not in (None, "")}
    return found if "severity" in found else {**found, "severity": "info" if message.type not in OPENING else "warning"}


def webhook_body(letter: Letter, receiver: str, now: datetime) -> str:
    """A letter as Alertmanager's webhook body, version 4. The times of an alert that stands are the same at every attempt."""
    rows = [_of_webhook(alert, now) for alert in alerts(letter, now)]
    own = labels(letter.message)
    grouped = {"alertname": rows[-1]["labels"]["alertname"], **({"lever": own["lever"]} if "lever" in own else {})}
    address = urlsplit(notice_text.link(letter.message, "page"))
    body = {
        "version": "4",
        "groupKey": "{}:{" + ", ".join(f'{key}="{value}"' for key, value in grouped.items()) + "}",
        "truncatedAlerts": 0,
        "status": "firing" if any(row["status"] == "firing" for row in rows) else "resolved",
        "receiver": receiver,
        "groupLabels": grouped,
        "commonLabels": _common([row["labels"] for row in rows]),
        "commonAnnotations": _common([row["annotations"] for row in rows]),
        "externalURL": f"{address.scheme}://{address.netloc}" if address.netloc else "",
        "alerts": rows,
    }
    return canonical.text(body)


def fingerprint(named: dict[str, str]) -> str:
    """Labels as the 16 hex digits that Alertmanager calls an alert by: 64-bit FNV-1a over names and values, each ended by 255."""
    number = _OFFSET
    for key, value in sorted(named.items()):
        for byte in (*key.encode(), _END, *value.encode(), _END):
            number = (number ^ byte) * _PRIME % 2**64
    return f"{number:016x}"


def _alert(message: Message, starts_at: datetime, ends_at: datetime, description: str | None = None) -> Alert:
    data = message.data
    page = notice_text.link(message, "page")
    annotations = {
        "summary": notice_text.title(message),
        "description": notice_text.cut(description or notice_text.reason(message), _LIMIT_TEXT),
        "impact": notice_urgency.told(data),
        "steps": notice_text.cut(" ".join(f"{number}. {step}" for number, step in enumerate(notice_text.steps(data), 1)), _LIMIT_TEXT),
        "commands": notice_text.cut("; ".join(notice_text.commands(data)), _LIMIT_TEXT),
        "replicas": notice_text.cut(notice_urgency.replicas(data), _LIMIT_TEXT),
        **{name: line for name in ("silence", "verify") if len(line := notice_text.how_to(message, name)) <= _LIMIT_TEXT},
        "page": page,
        "flip_id": str(data.get("flip_id") or ""),
    }
    return {
        "labels": labels(message),
        "annotations": {key: value for key, value in annotations.items() if value},
        "startsAt": wording.utc(starts_at),
        "endsAt": wording.utc(ends_at),
        **({"generatorURL": page} if page.startswith(("http://", "https://")) else {}),
    }


def _of_webhook(alert: Alert, now: datetime) -> Alert:
    is_over = datetime.fromisoformat(alert["endsAt"]) <= now
    return {
        "status": "resolved" if is_over else "firing",
        "generatorURL": "",
        **alert,
        "endsAt": alert["endsAt"] if is_over else _NEVER,
        "fingerprint": fingerprint(alert["labels"]),
    }


def _widened_until(message: Message) -> datetime | None:
    """Advice to widen stands until it expires: nothing ends it."""
    text = message.data.get("expires_at") if message.type == "lever.widen" else None
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _common(tables: Sequence[dict[str, str]]) -> dict[str, str]:
    first, *others = tables
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
