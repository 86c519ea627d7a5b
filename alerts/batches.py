"""Which waiting notices go out together: what waits for a receiver in, batches with the time of each out.

Nothing but the stored rows decides, so a restart changes no batch; what was tried together is tried again together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from alerts.outbox import Waiting
from alerts.receivers import Receiver


class Batch(NamedTuple):
    """Notices that go out as one message, and when."""

    items: tuple[Waiting, ...]
    due_at: datetime


def batches(items: Iterable[Waiting], receiver: Receiver, most: int = 1) -> list[Batch]:
    """The batches of at most so many notices, next first. New ones wait until the first of their group has waited long enough."""
    groups: dict[Hashable, list[Waiting]] = {}
    for item in items:
        groups.setdefault(_group(item, receiver), []).append(item)
    found: list[Batch] = []
    for group in groups.values():
        due_at = min(_due_at(item, receiver) for item in group)
        found += [Batch(tuple(group[start : start + most]), due_at) for start in range(0, len(group), most)]
    return sorted(found, key=lambda batch: batch.due_at)


def _group(item: Waiting, receiver: Receiver) -> Hashable:
    if receiver.waits_s == 0.0 or item.keys is None:
        return item.webhook_id
    keys = item.keys
    values = tuple(getattr(keys, word, None) or keys.segment.get(word) for word in receiver.group_by)
    return (values, None if _is_new(item) else item.next_attempt_at)


def _due_at(item: Waiting, receiver: Receiver) -> datetime:
    """When it is to go: a new one after the wait, a test, a replay or a further attempt at its own time."""
    wait_s = receiver.waits_s if _is_new(item) and item.keys is not None else 0.0
    return item.next_attempt_at + timedelta(seconds=wait_s)


def _is_new(item: Waiting) -> bool:
    return item.attempt == 0
