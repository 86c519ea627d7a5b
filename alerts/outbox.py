"""The durable outbox: flips in, rows of `deliveries` out. Who is due what, what waits, what was tried.

A row with outcome `pending` stands before the first attempt of a notice, or of a replay; then comes one row an attempt.
The newest row of a webhook id is the one with the most attempts, a pending one after its equal: no clock decides.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import polars as pl

from alerts import canonical
from alerts.receivers import Receiver
from queries.store import Store, Transaction

Outcome = Literal["pending", "delivered", "retrying", "failed", "gone"]
NOTIFY_FOR = timedelta(hours=24)
TEST_FLIP = "test"
_TIME = pl.Datetime("us", "UTC")
_ROW: dict[str, pl.DataType] = {
    "delivery_id": pl.String(),
    "flip_id": pl.String(),
    "webhook_id": pl.String(),
    "receiver": pl.String(),
    "attempt": pl.Int64(),
    "started_at": _TIME,
    "ended_at": _TIME,
    "status_code": pl.Int64(),
    "outcome": pl.String(),
    "error": pl.String(),
    "next_attempt_at": _TIME,
}

# The newest flip of a stream is due once; one that takes a recommendation back only to who was told of it.
_DUE = """
with newest as (
    select * from flips qualify row_number() over (partition by policy, lever, segment order by decided_at desc) = 1
), told as (
    select f.policy, f.lever, f.segment, arg_max(f.state_after, f.decided_at) as state
    from flips f semi join (select flip_id from deliveries where receiver = $receiver and outcome = 'delivered') d using (flip_id)
    group by all
)
select n.flip_id, n.lever from newest n
anti join (select flip_id from deliveries where receiver = $receiver) handed using (flip_id)
left join told t on t.policy = n.policy and t.lever = n.lever and t.segment = n.segment
where n.decided_at > $since and (n.state_after = 'off_recommended' or (n.state_after = 'on' and t.state = 'off_recommended'))
order by n.decided_at, n.flip_id
"""
_NEWEST = """
select flip_id, webhook_id, attempt, outcome, started_at, next_attempt_at,
    attempt - max(attempt) filter (where outcome = 'pending') over (partition by webhook_id) as tries
from deliveries where receiver = $receiver
qualify row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
"""
_STOPPED = """
select coalesce(arg_max(outcome, ended_at) = 'gone', false) as stopped
from deliveries where receiver = $receiver and outcome in ('gone', 'delivered')
"""


class Waiting(NamedTuple):
    """A notice that waits for its next attempt. `tries` counts attempts since it was put in or replayed."""

    flip_id: str
    webhook_id: str
    attempt: int
    tries: int
    put_in_at: datetime
    next_attempt_at: datetime


class Attempt(NamedTuple):
    """What came of one attempt."""

    started_at: datetime
    ended_at: datetime
    outcome: Outcome
    status_code: int | None = None
    error: str | None = None
    next_attempt_at: datetime | None = None


def webhook_id(flip_id: str, receiver: str) -> str:
    """The id under which a receiver gets a flip: the same over retries, restarts and replays."""
    return f"msg_{canonical.digest([flip_id, receiver])[:32]}"


def due_flips(reader: Store | Transaction, receiver: Receiver, newest_watermark: datetime, *, caught_up: bool) -> list[str]:
    """The flips to hand to a receiver now, oldest first: the newest of each stream, not handed yet, younger than 24 h.

    None while judging has not caught up, since a later block may still take a flip back.
    """
    if not caught_up:
        return []
    rows = reader.frame(_DUE, {"receiver": receiver.name, "since": newest_watermark - NOTIFY_FOR})
    return [row["flip_id"] for row in rows.to_dicts() if receiver.wants(row["lever"])]


def put_in(store: Store, receiver: Receiver, newest_watermark: datetime, now: datetime, *, caught_up: bool) -> int:
    """Stores what is due as pending, before any attempt; gives how many. A receiver that is gone gets nothing new."""
    if not due_flips(store, receiver, newest_watermark, caught_up=caught_up) or stopped(store, receiver.name):
        return 0
    with store.write() as transaction:
        due = due_flips(transaction, receiver, newest_watermark, caught_up=caught_up)
        return _insert(transaction, [_pending(flip_id, webhook_id(flip_id, receiver.name), receiver.name, 0, now) for flip_id in due])


def put_in_test(store: Store, receiver: Receiver, now: datetime) -> str:
    """Stores a test notice as pending; gives its webhook id. It is tried once."""
    name = webhook_id(f"{TEST_FLIP} {now.isoformat()}", receiver.name)
    with store.write() as transaction:
        _insert(transaction, [_pending(TEST_FLIP, name, receiver.name, 0, now)])
    return name


def replay(store: Store, delivery_id: str, now: datetime) -> Mapping[str, Any] | None:
    """Stores a new pending row for the notice of a delivery, under the same webhook id; None when there is no such delivery."""
    with store.write() as transaction:
        found = transaction.frame(
            "select flip_id, webhook_id, receiver, max(attempt) as attempt from deliveries"
            " where webhook_id = (select webhook_id from deliveries where delivery_id = $id) group by all",
            {"id": delivery_id},
        ).to_dicts()
        if not found:
            return None
        row = _pending(found[0]["flip_id"], found[0]["webhook_id"], found[0]["receiver"], found[0]["attempt"], now)
        _insert(transaction, [row])
    return row


def waiting(store: Store, receiver: str) -> list[Waiting]:
    """What waits for a receiver, next first. A receiver that is gone keeps only replays and tests waiting."""
    rows = store.rows(
        f"select * from ({_NEWEST}) where outcome in ('pending', 'retrying') order by next_attempt_at", {"receiver": receiver}
    )
    is_stopped = bool(rows) and stopped(store, receiver)
    return [
        Waiting(row["flip_id"], row["webhook_id"], row["attempt"], row["tries"], row["started_at"], row["next_attempt_at"])
        for row in rows
        if not is_stopped or (row["outcome"] == "pending" and (row["attempt"] > 0 or row["flip_id"] == TEST_FLIP))
    ]


def stopped(store: Store, receiver: str) -> bool:
    """Whether a receiver answered 410 and nothing has got through to it since."""
    return bool(store.rows(_STOPPED, {"receiver": receiver})[0]["stopped"])


def record(store: Store, item: Waiting, receiver: str, attempt: Attempt) -> None:
    """Stores what came of an attempt at a waiting notice."""
    row = {
        "delivery_id": secrets.token_hex(16),
        "flip_id": item.flip_id,
        "webhook_id": item.webhook_id,
        "receiver": receiver,
        "attempt": item.attempt + 1,
        **attempt._asdict(),
    }
    with store.write() as transaction:
        _insert(transaction, [row])


def _pending(flip_id: str, webhook_id: str, receiver: str, attempt: int, now: datetime) -> dict[str, Any]:
    return {
        "delivery_id": secrets.token_hex(16),
        "flip_id": flip_id,
        "webhook_id": webhook_id,
        "receiver": receiver,
        "attempt": attempt,
        "started_at": now,
        "ended_at": None,
        "status_code": None,
        "outcome": "pending",
        "error": None,
        "next_attempt_at": now,
    }


def _insert(transaction: Transaction, rows: list[dict[str, Any]]) -> int:
    return transaction.insert("deliveries", pl.DataFrame(rows, schema=_ROW)) if rows else 0
