"""Rows of `deliveries`: what is put in and what came of an attempt in, rows of the table out.

A row with outcome `pending` stands before the first attempt of a notice, or of a replay; then comes one row an attempt.
The newest row of a webhook id is the one with the most attempts, a pending one after its equal: no clock decides.
"""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any, Literal, NamedTuple

import polars as pl

from queries.store import Transaction

Outcome = Literal["pending", "delivered", "retrying", "failed", "gone"]
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
    "held_until": _TIME,
}


class Attempt(NamedTuple):
    """What came of one attempt. `held_until`: the receiver asked for nothing more before."""

    started_at: datetime
    ended_at: datetime
    outcome: Outcome
    status_code: int | None = None
    error: str | None = None
    next_attempt_at: datetime | None = None
    held_until: datetime | None = None


def pending(flip_id: str, webhook_id: str, receiver: str, attempt: int, now: datetime) -> dict[str, Any]:
    """A notice that is to be tried from now on, after so many attempts."""
    return tried(flip_id, webhook_id, receiver, attempt, Attempt(now, now, "pending", next_attempt_at=now)) | {"ended_at": None}


def tried(flip_id: str, webhook_id: str, receiver: str, attempt: int, result: Attempt) -> dict[str, Any]:
    """What came of the attempt of a number."""
    named = {"delivery_id": secrets.token_hex(16), "flip_id": flip_id, "webhook_id": webhook_id, "receiver": receiver, "attempt": attempt}
    return {**named, **result._asdict()}


def insert(transaction: Transaction, rows: list[dict[str, Any]]) -> int:
    """Stores rows; gives their number."""
    return transaction.insert("deliveries", pl.DataFrame(rows, schema=_ROW)) if rows else 0
