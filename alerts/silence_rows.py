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
LEAST_OF_ID = 4  # characters that stand for a whole id
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


def end(store: Store, silence_id: str, now: datetime) -> Silence:
    """Ends a silence now and gives it; one that has ended stays as it was. The beginning of an id does where only one begins so.

    Raises:
        SilenceError: none has that id, or several begin so.
    """
    with store.write() as transaction:
        asked = "select * from silences where silence_id = $id or (length($id) >= $least and starts_with(silence_id, $id))"
        rows = transaction.frame(asked, {"id": silence_id, "least": LEAST_OF_ID}).to_dicts()
        found = {str(row["silence_id"]): _silence(row) for row in rows}
        one = found[_only("silence", silence_id, list(found))]
        if now >= one.over_at:
            return one
        transaction.execute("update silences set ended_at = $now where silence_id = $id", {"id": one.silence_id, "now": now})
    return replace(one, ended_at=now)


def flip_of(store: Store, flip_id: str) -> str:
    """The whole id of a flip, by it or by the beginning of it.

    Raises:
        SilenceError: none has that id, or several begin so.
    """
    asked = "select flip_id from flips where flip_id = $id or (length($id) >= $least and starts_with(flip_id, $id)) limit 9"
    return _only("flip", flip_id, [str(row["flip_id"]) for row in store.rows(asked, {"id": flip_id, "least": LEAST_OF_ID})])


def _only(what: str, asked: str, found: list[str]) -> str:
    if asked in found:
        return asked
    if len(found) == 1:
        return found[0]
    if found:
        msg = f"{len(found)} {what}s begin with {asked!r}: {', '.join(sorted(found)[:4])}; take more of the id"
    else:
        msg = f"there is no {what} {asked[:40]!r}; takes an id, or its first {LEAST_OF_ID} characters or more"
    raise SilenceError(msg)


def listed(store: Store) -> list[Silence]:
    """All silences, newest first."""
    return [_silence(row) for row in store.rows("select * from silences order by created_at desc, silence_id")]


def since(reader: Store | Transaction, moment: datetime) -> list[Silence]:
    """The silences that stand, are to come, or were over after a moment."""
    asked = "select * from silences where coalesce(ended_at, ends_at) > $moment order by starts_at, silence_id"
    return [_silence(row) for row in reader.frame(asked, {"moment": moment}).to_dicts()]


def _silence(row: Mapping[str, Any]) -> Silence:
    return Silence(**{**row, "segment": None if row["segment"] is None else json.loads(row["segment"])})
