"""Sending: one receiver's waiting notices in, attempts out; what came of each is stored before the next is made."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx

from alerts import outbox, signing
from alerts.outbox import TEST_FLIP, Attempt, Waiting
from alerts.payload import body
from alerts.receivers import Receiver
from queries.store import Store

TIMEOUT_S = 15.0
JITTER = 0.2
LONGEST_WAIT_S = 86400.0
_GONE = 410
_THROTTLED = (429, 503)

Clock = Callable[[], datetime]


class DeliveryError(RuntimeError):
    """An attempt that did not deliver. `permanent` ends the attempts; `retry_after_s` is the receiver's own wish."""

    def __init__(self, message: str, permanent: bool, status_code: int | None = None, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.status_code = status_code
        self.retry_after_s = retry_after_s


class Route(NamedTuple):
    """One receiver with what sending to it takes."""

    receiver: Receiver
    secret: str
    client: httpx.Client
    rng: random.Random


def client() -> httpx.Client:
    """An HTTP client for one receiver: 15 s for each step, no redirects."""
    return httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, headers={"user-agent": "leverwatch"})


def deliver_waiting(store: Store, route: Route, clock: Clock) -> datetime | None:
    """Tries every notice whose time has come; gives when the next one's comes, None when none waits."""
    for item in outbox.waiting(store, route.receiver.name):
        if item.next_attempt_at <= clock():
            attempt = _attempt(store, route, item, clock)
            outbox.record(store, item, route.receiver.name, attempt)
            if attempt.outcome == "gone":
                break
    left = outbox.waiting(store, route.receiver.name)
    return left[0].next_attempt_at if left else None


def send(route: Route, webhook_id: str, text: str, now: datetime) -> int:
    """Posts one signed body; gives the status.

    Raises:
        DeliveryError: no answer, or one other than 2xx.
    """
    signed = signing.headers(route.secret, webhook_id, now, text)
    try:
        with route.client.stream(
            "POST", route.receiver.url, content=text.encode(), headers={"content-type": "application/json", **signed}
        ) as response:
            status, retry_after = response.status_code, response.headers.get("retry-after")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error).replace(route.receiver.url, "the url") or "no answer"
        msg = f"{type(error).__name__}: {reason}"
        raise DeliveryError(msg, permanent=False) from error
    if status // 100 == 2:
        return status
    wait_s = retry_after_s(retry_after, now) if status in _THROTTLED else 0.0
    msg = "410: the receiver is gone; replay a delivery to start again" if status == _GONE else f"answered {status}"
    raise DeliveryError(msg, permanent=status == _GONE, status_code=status, retry_after_s=wait_s)


def retry_after_s(header: str | None, now: datetime) -> float:
    """A Retry-After header in seconds from now: a number or a date; 0 where it is neither. At most a day."""
    if header is None:
        return 0.0
    try:
        wait_s = float(header) if header.strip().isdigit() else (parsedate_to_datetime(header) - now).total_seconds()
    except (TypeError, ValueError):
        return 0.0
    return min(max(wait_s, 0.0), LONGEST_WAIT_S)


def wait_s(schedule_s: tuple[float, ...], tries: int, error: DeliveryError, rng: random.Random) -> float | None:
    """How long to wait after a failed attempt: the schedule's step and up to a fifth more; None when the schedule is at its end."""
    if tries >= len(schedule_s):
        return None
    return max(schedule_s[tries], error.retry_after_s) * (1.0 + JITTER * rng.random())


def _attempt(store: Store, route: Route, item: Waiting, clock: Clock) -> Attempt:
    started_at = clock()
    try:
        status = send(route, item.webhook_id, _body(store, item, route.receiver.name), started_at)
    except DeliveryError as error:
        return _failed(route, item, error, started_at, clock())
    return Attempt(started_at, clock(), "delivered", status)


def _body(store: Store, item: Waiting, receiver: str) -> str:
    try:
        return body(store, item, receiver)
    except LookupError as error:
        raise DeliveryError(str(error), permanent=True) from error


def _failed(route: Route, item: Waiting, error: DeliveryError, started_at: datetime, ended_at: datetime) -> Attempt:
    text, status = str(error), error.status_code
    if status == _GONE:
        return Attempt(started_at, ended_at, "gone", status, text)
    schedule_s = () if item.flip_id == TEST_FLIP else route.receiver.retry_schedule_s
    pause_s = None if error.permanent else wait_s(schedule_s, item.tries, error, route.rng)
    if pause_s is None:
        return Attempt(started_at, ended_at, "failed", status, text)
    return Attempt(started_at, ended_at, "retrying", status, text, ended_at + timedelta(seconds=pause_s))
