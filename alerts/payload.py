"""Webhook bodies: a waiting notice in, the JSON text that is signed and sent out; the same text at every attempt."""

from __future__ import annotations

import json
from typing import Any

from alerts import canonical, wording
from alerts.outbox import TEST_FLIP, Waiting
from queries.store import Store

LIMIT_BYTES = 20_000
_TYPES = {"off_recommended": "lever.disable", "on": "lever.resolved"}
_SHED = ("causal_chain", "rollback", "evidence")


def body(store: Store, item: Waiting, receiver: str) -> str:
    """The body of a notice, under 20 kB.

    Raises:
        LookupError: the flip is not stored any more.
    """
    if item.flip_id == TEST_FLIP:
        data = {"receiver": receiver, "text": "A test from Leverwatch: nothing has to be done."}
        return canonical.text({"type": "test", "timestamp": wording.utc(item.put_in_at), "data": data})
    rows = store.rows("select state_after, decided_at, notice from flips where flip_id = $flip_id", {"flip_id": item.flip_id})
    if not rows:
        msg = f"flip {item.flip_id} is not stored any more"
        raise LookupError(msg)
    row = rows[0]
    return _fitting(_TYPES[row["state_after"]], wording.utc(row["decided_at"]), json.loads(row["notice"]))


def _fitting(kind: str, timestamp: str, data: dict[str, Any]) -> str:
    """The body, without its longest explanations where it would be too long; `links` leads to them."""
    shed: list[str] = []
    for part in (None, *_SHED):
        if part is not None:
            shed.append(part)
            data = {**data, part: None, "left_out": shed}
        text = canonical.text({"type": kind, "timestamp": timestamp, "data": data})
        if len(text.encode()) < LIMIT_BYTES:
            return text
    msg = f"flip {data.get('flip_id')}: the notice is longer than {LIMIT_BYTES} bytes even without {', '.join(_SHED)}"
    raise LookupError(msg)
