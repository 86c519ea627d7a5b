"""What tests of notices share: rows of `flips`, a clock that is moved, receivers and routes."""

from __future__ import annotations

import json
import random
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import polars as pl

from alerts import outbox
from alerts.deliver import Route
from alerts.receivers import Receiver
from queries.store import Store

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = datetime(2026, 3, 5, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def receiver(name: str = "oncall", url: str = "http://127.0.0.1:9/hook", **changes: Any) -> Receiver:
    return Receiver(name=name, url=url, secret=SECRET, **changes)


def route(to: Receiver, timeout_s: float = 2.0, secret: str = SECRET, client: httpx.Client | None = None) -> Route:
    """A route with a seeded generator. Where no client is given: one of addresses without TLS, which reads no certificates."""
    if client is None:
        client = httpx.Client(timeout=timeout_s, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return Route(to, secret, client, random.Random(7))


def insert(store: Store, table: str, row: dict[str, Any]) -> None:
    """Stores one row."""
    with store.write() as transaction:
        transaction.insert(table, pl.DataFrame([row]))


def flip(store: Store, flip_id: str, state: str, hours_ago: float, action: str | None = None, **changes: Any) -> str:
    """Stores a flip of policy `p` that was decided so many hours before NOW; the state before does not matter to delivery."""
    action = action or {"off_recommended": "disable", "probation": "enable"}.get(state, "keep")
    row = {"flip_id": flip_id, "policy": "p", "lever": "speculation", "segment": '{"model":"m"}', "state_before": "?", "state_after": state}
    row |= {"decided_at": NOW - hours_ago * HOUR, "reason": "r", "notice": json.dumps({"flip_id": flip_id})}  # type: ignore[dict-item]
    row |= {"action": action, "severity": "warning", "shadow": False} | changes  # type: ignore[dict-item]
    insert(store, "flips", row)
    return flip_id


def due(store: Store, to: Receiver | None = None, now: datetime = NOW, mark: datetime = NOW) -> list[str]:
    return outbox.due_flips(store, to or receiver(), mark, now, caught_up=True)


def put_in(store: Store, to: Receiver | None = None, now: datetime = NOW) -> int:
    return outbox.put_in(store, to or receiver(), now, now, caught_up=True)


def tried(store: Store, outcome: outbox.Outcome, name: str = "oncall", now: datetime = NOW, again_s: float = 3600.0) -> list[str]:
    """Records one attempt at each notice that waits; gives their flips."""
    items = outbox.waiting(store, name, now)
    again = now + timedelta(seconds=again_s) if outcome == "retrying" else None
    for item in items:
        outbox.record(store, item, name, outbox.Attempt(now, now, outcome, next_attempt_at=again))
    return [item.flip_id for item in items]


def emptied(store: Store) -> Store:
    """The same store without any flip, notice or silence: making a new one takes longer than a test does."""
    with store.write() as transaction:
        for table in ("flips", "deliveries", "silences", "heartbeats"):
            transaction.execute(f"delete from {table}")
    return store
