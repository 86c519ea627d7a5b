"""Receivers over HTTP: how each does, a test notice to one, and everything that was given up sent again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from alerts import api_answers, dead_letters, outbox
from alerts.levers import unknown
from alerts.receivers import Receiver
from alerts.shown import shown
from queries import files
from queries.store import Store

_UNUSED = {"waiting": 0, "given_up": 0, "is_stopped": False, "delivered_at": None, "held_until": None}
_NO_HEARTBEAT = {"heartbeat_at": None, "heartbeat_outcome": None, "heartbeat_error": None}


def add(routes: APIRouter, store: Store, clock: Callable[[], datetime], wake: Callable[[], None], receivers: Sequence[Receiver]) -> None:
    """Adds `GET /api/receivers` and what can be asked for one of them."""
    known = {receiver.name: receiver for receiver in receivers}

    @routes.get("/api/receivers")
    def listed() -> list[dict[str, Any]]:
        """Each configured receiver: what waits for it, what was given up, whether it answered 410, its newest delivery and heartbeat.

        `held_until`: it asked for nothing before (Retry-After), and its whole queue waits; null where it may be sent to.
        """
        rows = {row["receiver"]: row for row in store.rows(files.question("list_receivers"), {"now": clock()})}
        own = ({"receiver": name, "kind": receiver.kind, **_UNUSED, **_NO_HEARTBEAT} for name, receiver in known.items())
        return [shown(row | rows.get(str(row["receiver"]), {})) for row in own]

    @routes.post("/api/receivers/{name}/replay", status_code=202)
    def replay_all(name: str) -> Any:
        """Sends again what was given up for a receiver, each notice under its own webhook id, but not what is superseded there.

        Not before `held_until`, where the receiver asked for nothing until then.
        """
        if name not in known:
            return _not_found(name, known)
        done = dead_letters.replay_all(store, name, clock())
        wake()
        return shown({"receiver": name, **done._asdict(), "held_until": outbox.held_until(store, name, clock())})

    @routes.post("/api/receivers/{name}/test", status_code=202)
    def test(name: str) -> Any:
        """Sends a test notice to a receiver, once, and not before `held_until`; `GET /api/deliveries?flip_id=test` says what came of it."""
        if name not in known:
            return _not_found(name, known)
        webhook_id = outbox.put_in_test(store, known[name], clock())
        wake()
        return shown({"receiver": name, "webhook_id": webhook_id, "held_until": outbox.held_until(store, name, clock())})


def _not_found(name: str, known: dict[str, Receiver]) -> JSONResponse:
    return api_answers.error("receiver_not_found", unknown("receiver", name, known), "GET /api/receivers lists them", status=404)
