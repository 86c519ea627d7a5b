"""The table `silences`: a `Silence` in, rows out and back; an ended one stays, so that it can be said who was not told of what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from alerts import canonical
from alerts.silences import Silence, SilenceError
from queries.store import Store, Transaction

MOST_STANDING = 1_000
_TIMES = ("starts_at", "ends_at", "created_at", "ended_at")
_WORDS = ("silence_id", "lever", "policy", "segment", "receiver", "flip_id", "created_by", "comment")
_ROW: dict[str, pl.DataType] = {**{name: pl.String() for name in _WORDS}, **{name: pl.Datetime("us", "UTC") for name in _TIMES}}


def add(store: Store, silence: Silence) -> Silence:
    """Stores a silence.

    Raises:
        SilenceError: as many as can stand do so already.
    """
    row = {name: getattr(silence, name) for name in _ROW}
    row["segment"] = None if silence.segment is None else canonical.text(dict(silence.segment))
    with store.write() as transaction:
        if len(since(transaction, silence.created_at)) >= MOST_STANDING:
            msg = f"{MOST_STANDING} silences stand already; end some of them"
            raise SilenceError(msg)
        transaction.insert("silences", pl.DataFrame([row], schema=_ROW))
    return silence


def end(store: Store, silence_id: str, now: datetime) -> Silence | None:
    """Ends a silence now and gives it; one that has ended stays as it was. None when there is no such silence."""
    with store.write() as transaction:
        rows = transaction.frame("select * from silences where silence_id = $id", {"id": silence_id}).to_dicts()
        if not rows:
            return None
        found = _silence(rows[0])
        if now >= found.over_at:
            return found
        transaction.execute("update silences set ended_at = $now where silence_id = $id", {"id": silence_id, "now": now})
    return replace(found, ended_at=now)


def listed(store: Store) -> list[Silence]:
    """All silences, newest first."""
    return [_silence(row) for row in store.rows("select * from silences order by created_at desc, silence_id")]


def since(reader: Store | Transaction, moment: datetime) -> list[Silence]:
    """The silences that stand, are to come, or were over after a moment."""
    asked = "select * from silences where coalesce(ended_at, ends_at) > $moment order by starts_at, silence_id"
    return [_silence(row) for row in reader.frame(asked, {"moment": moment}).to_dicts()]


def _silence(row: Mapping[str, Any]) -> Silence:
    return Silence(**{**row, "segment": None if row["segment"] is None else json.loads(row["segment"])})
