"""Sending: one receiver's waiting notices in, attempts out; what came of each is stored before the next is made."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import httpx

from alerts import (
    channels_alertmanager,
    channels_chat,
    channels_email,
    channels_file,
    channels_webhook,
    outbox,
    payload,
)
from alerts.batches import Batch, batches
from alerts.channels import GONE, Letter, Send
from alerts.channels import TIMEOUT_S as TIMEOUT_S
from alerts.channels import DeliveryError as DeliveryError
from alerts.channels import Route as Route
from alerts.channels import Tried as Tried
from alerts.channels import retry_after_s as retry_after_s
from alerts.outbox import TEST_FLIP, Attempt, Waiting
from alerts.payload import Message
from alerts.receivers import Receiver
from queries.store import Store

JITTER = 0.2
SENDERS: Mapping[str, Send] = {
    "webhook": channels_webhook.send,
    "alertmanager": channels_alertmanager.send,
    "chat": channels_chat.send,
    "email": channels_email.send,
    "file": channels_file.send,
}
MOST_LETTERS: Mapping[str, int] = {"chat": channels_chat.MOST_LETTERS, "email": channels_email.MOST_LETTERS}
"""In one message; a kind that is not named gets each notice by itself."""

Clock = Callable[[], datetime]
Results = list[tuple[Waiting, Attempt]]


def client() -> httpx.Client:
    """An HTTP client for one receiver: 15 s for each step, no redirects."""
    return httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, headers={"user-agent": "leverwatch"})


def deliver_waiting(store: Store, route: Route, clock: Clock) -> datetime | None:
    """Tries every notice whose time has come; gives when the next one's comes, None when none waits.

    A receiver that asks to wait gets nothing until then, whatever is due.
    """
    held_until = outbox.held_until(store, route.receiver.name, clock())
    if held_until is not None:
        return held_until
    for batch in _waiting(store, route.receiver, clock()):
        if batch.due_at <= clock():
            results = _attempt(store, route, batch.items, clock)
            outbox.record_all(store, results, route.receiver.name)
            if any(attempt.outcome == "gone" or attempt.held_until for _, attempt in results):
                break
    held_until = outbox.held_until(store, route.receiver.name, clock())
    if held_until is not None:
        return held_until
    times = [batch.due_at for batch in _waiting(store, route.receiver, clock())[:1]]
    if route.receiver.kind == "alertmanager":
        again_at = channels_alertmanager.push_again(store, route, clock())
        times += [again_at] if again_at else []
    return min(times, default=None)


def send(route: Route, webhook_id: str, text: str, now: datetime) -> int | None:
    """Sends one body, as the receiver's kind does it; gives the status, None where the kind has none.

    Raises:
        DeliveryError: it was not delivered.
    """
    return SENDERS[route.receiver.kind](route, [Letter(webhook_id, _read(text), text)], now).status_code


def wait_s(schedule_s: tuple[float, ...], tries: int, error: DeliveryError, rng: random.Random) -> float | None:
    """How long to wait after a failed attempt: the schedule's step and up to a fifth more; None when the schedule is at its end."""
    if tries >= len(schedule_s):
        return None
    return max(schedule_s[tries], error.retry_after_s) * (1.0 + JITTER * rng.random())


def _waiting(store: Store, receiver: Receiver, now: datetime) -> list[Batch]:
    return batches(outbox.waiting(store, receiver.name, now), receiver, MOST_LETTERS.get(receiver.kind, 1))


def _attempt(store: Store, route: Route, items: Sequence[Waiting], clock: Clock) -> Results:
    """What comes of sending notices as one message. One that cannot be made any more fails by itself."""
    started_at, results = clock(), Results()
    carried: list[tuple[Waiting, Letter]] = []
    for item in items:
        try:
            carried.append((item, _letter(store, item, route.receiver)))
        except LookupError as error:
            results.append((item, Attempt(started_at, clock(), "failed", None, str(error))))
    if not carried:
        return results
    began_s = time.monotonic()
    try:
        sent = SENDERS[route.receiver.kind](route, [letter for _, letter in carried], started_at)
        attempt = Attempt(started_at, clock(), "delivered", sent.status_code, sent.note)
    except DeliveryError as error:
        attempt = _failed(route, carried[0][0], error, started_at, clock())
    to, elapsed_s = route.receiver, time.monotonic() - began_s
    route.told(Tried(to.name, to.kind, len(carried), attempt.outcome, attempt.status_code, elapsed_s))
    return results + [(item, attempt) for item, _ in carried]


def _letter(store: Store, item: Waiting, receiver: Receiver) -> Letter:
    message = payload.message(store, item, receiver.name)
    needs_opened = receiver.kind == "alertmanager" or receiver.format == "alertmanager"
    opened = channels_alertmanager.opened(store, item.flip_id, receiver.name) if needs_opened else None
    return Letter(item.webhook_id, message, payload.text(message), opened)


def _read(text: str) -> Message:
    body = json.loads(text)
    return Message(body["type"], datetime.fromisoformat(body["timestamp"]).astimezone(UTC), body["data"])


def _failed(route: Route, item: Waiting, error: DeliveryError, started_at: datetime, ended_at: datetime) -> Attempt:
    text, status = str(error), error.status_code
    if status == GONE:
        return Attempt(started_at, ended_at, "gone", status, text)
    schedule_s = () if item.flip_id == TEST_FLIP else route.receiver.retry_schedule_s
    held_until = ended_at + timedelta(seconds=error.retry_after_s) if error.retry_after_s else None
    pause_s = None if error.permanent else wait_s(schedule_s, item.tries, error, route.rng)
    if pause_s is None:
        return Attempt(started_at, ended_at, "failed", status, text, held_until=held_until)
    return Attempt(started_at, ended_at, "retrying", status, text, ended_at + timedelta(seconds=pause_s), held_until)
