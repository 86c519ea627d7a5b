"""Flips in, those that a receiver is to be handed now out: what recommends to who wants it, what ends that to who was told."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from alerts import known_receivers, silence_rows, silences
from alerts.known_receivers import Stream
from alerts.notice_types import OPENING, type_of
from alerts.receivers import Receiver
from alerts.silences import FlipKeys, Silence
from queries import files
from queries.store import Store, Transaction

NOTIFY_FOR = timedelta(hours=24)


def due_flips(
    reader: Store | Transaction, receiver: Receiver, newest_watermark: datetime, now: datetime, *, caught_up: bool, is_new: bool = False
) -> list[str]:
    """The flips to hand to a receiver now, oldest first: of each stream the newest, where it was not handed yet, and the end before it.

    What recommends goes to who wants it, younger than 24 h or held back by a silence until less than 24 h ago: of what was decided before
    the receiver was there a silence held nothing back. What ends a recommendation goes to who was told of it, however late. None while
    judging has not caught up: a later block may take a flip back.
    A receiver that `is_new` is handed what stands as well, however long ago it was decided.
    """
    if not caught_up:
        return []
    rows = reader.frame(files.question("outbox_due"), {"receiver": receiver.name}).to_dicts()
    if not rows:
        return []
    held = silence_rows.since(reader, now - NOTIFY_FOR)
    history = known_receivers.history_until(reader, receiver, now, is_new=is_new)
    before = min(history, newest_watermark) - NOTIFY_FOR if history else None
    standing = known_receivers.standing(reader) if is_new and receiver.standing else frozenset()
    return [row["flip_id"] for row in rows if _is_due(row, receiver, newest_watermark - NOTIFY_FOR, before, held, now, standing)]


def keys_of(row: Mapping[str, Any]) -> FlipKeys:
    """What silences and receivers tell a row of `flips` by."""
    return FlipKeys(row["flip_id"], row["policy"], row["lever"], json.loads(row["segment"]), row["severity"] or "warning")


def _is_due(
    row: Mapping[str, Any],
    receiver: Receiver,
    since: datetime,
    before: datetime | None,
    held: Iterable[Silence],
    now: datetime,
    standing: Collection[tuple[Stream, str]],
) -> bool:
    kind = type_of(row["state_after"], row["action"])
    if kind == "lever.resolved":
        return row["told_state"] is not None and type_of(row["told_state"], row["told_action"]) in OPENING
    keys = keys_of(row)
    if row["shadow"] or not receiver.wants(keys.lever, keys.segment, keys.severity) or silences.holds(held, keys, receiver.name, now):
        return False
    stands = kind in OPENING and ((row["policy"], row["lever"], row["segment"]), row["state_after"]) in standing
    was_held = (before is None or row["decided_at"] > before) and silences.held_lately(held, keys, receiver.name, now)
    return bool(stands or row["decided_at"] > since or was_held)
