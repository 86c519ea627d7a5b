"""Webhook bodies: a waiting notice in, the JSON text that is signed and sent out; the same text at every attempt."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from alerts import canonical, wording
from alerts.notice_types import NoticeType, type_of
from alerts.outbox import TEST_FLIP, Waiting
from queries.store import Store

LIMIT_BYTES = 20_000
_SHED = ("causal_chain", "ledger", "rollback", "steps", "after_check", "evidence", "query")
_LIMIT_TEXT, _LIMIT_NAME = 1000, 100


class Message(NamedTuple):
    """A notice as every kind of receiver gets it: its type, when it was decided, and its `data`."""

    type: NoticeType
    timestamp: datetime
    data: dict[str, Any]


def message(store: Store, item: Waiting, receiver: str) -> Message:
    """What a waiting notice says.

    Raises:
        LookupError: the flip is not stored any more.
    """
    if item.flip_id == TEST_FLIP:
        data = {"receiver": receiver, "text": "A test from Leverwatch: nothing has to be done."}
        return Message("test", item.put_in_at, data)
    rows = store.rows("select state_after, action, decided_at, notice from flips where flip_id = $flip_id", {"flip_id": item.flip_id})
    if not rows:
        msg = f"flip {item.flip_id} is not stored any more"
        raise LookupError(msg)
    row = rows[0]
    return Message(type_of(row["state_after"], row["action"]), row["decided_at"], json.loads(row["notice"]))


def body(store: Store, item: Waiting, receiver: str) -> str:
    """The body of a notice, under 20 kB.

    Raises:
        LookupError: the flip is not stored any more, or its notice cannot be made short enough.
    """
    return text(message(store, item, receiver))


def text(message: Message) -> str:
    """A message as JSON text under 20 kB, without its longest explanations where it would be too long; `links` leads to them.

    Raises:
        LookupError: it cannot be made short enough.
    """
    data, shed = message.data, list[str]()
    for part in (None, *(part for part in _SHED if message.data.get(part)), "ends of texts"):
        if part is not None:
            shed.append(part)
            data = {**(_cut(data) if part not in _SHED else data | {part: None}), "left_out": shed}
        written = canonical.text({"type": message.type, "timestamp": wording.utc(message.timestamp), "data": data})
        if len(written.encode()) < LIMIT_BYTES:
            return written
    msg = f"flip {data.get('flip_id')}: the notice is longer than {LIMIT_BYTES} bytes even without {', '.join(_SHED)}"
    raise LookupError(msg)


def _cut(data: dict[str, Any]) -> dict[str, Any]:
    """Without what names from traffic make long: they have no limit of their own, and what is not told at all is worse."""
    links = {name: link for name, link in (data.get("links") or {}).items() if len(link) <= _LIMIT_TEXT}
    segment = {key: _short(word, _LIMIT_TEXT // 4) for key, word in (data.get("segment") or {}).items()}
    how_to = {name: line for name, line in (data.get("how_to") or {}).items() if len(line) <= _LIMIT_TEXT}  # half a command is none
    served = data.get("served_by") or {}
    served_by = {**served, "replicas": [_short(name, _LIMIT_NAME) for name in served["replicas"]]} if served else None
    told = {"links": links, "segment": segment, "reason": _short(str(data.get("reason") or ""), _LIMIT_TEXT)}
    return {**data, **told, **({"how_to": how_to, "served_by": served_by} if "how_to" in data else {})}


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
