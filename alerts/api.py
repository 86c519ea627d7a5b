"""The alerts' HTTP face: the store in, `/api/verdicts`, `/api/flips`, `/api/deliveries` and replays out, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from alerts import outbox, wording
from queries.store import Store

Limit = Annotated[int, Query(ge=1, le=10_000)]
_VERDICTS = """
select c.* from current_verdicts c semi join policies using (policy)
where ($lever is null or lever = $lever) order by (verdict = 'disable') desc, decided_at desc, policy, segment limit $limit
"""
_FLIPS = """
select * from flips where ($flip_id is null or flip_id = $flip_id) and ($lever is null or lever = $lever)
order by decided_at desc, flip_id limit $limit
"""
_DELIVERIES = """
select * from deliveries where ($flip_id is null or flip_id = $flip_id) and ($receiver is null or receiver = $receiver)
qualify outcome <> 'pending' or attempt = max(attempt) over (partition by webhook_id)
order by started_at desc, webhook_id, attempt desc limit $limit
"""


def router(store: Store, clock: Callable[[], datetime], wake: Callable[[], None] = lambda: None) -> APIRouter:
    """The routes of alerts; `wake` is called when a replay waits to be carried."""
    routes = APIRouter(tags=["alerts"])

    @routes.get("/api/verdicts")
    def verdicts(lever: str | None = None, limit: Limit = 1000) -> list[dict[str, Any]]:
        """What every stream's latest judging said, disabled ones first."""
        return [_shown(row) for row in store.rows(_VERDICTS, {"lever": lever, "limit": limit})]

    @routes.get("/api/flips")
    def flips(flip_id: str | None = None, lever: str | None = None, limit: Limit = 100) -> list[dict[str, Any]]:
        """State changes, newest first, each with the notice that went out."""
        return [_shown(row) for row in store.rows(_FLIPS, {"flip_id": flip_id, "lever": lever, "limit": limit})]

    @routes.get("/api/deliveries")
    def deliveries(flip_id: str | None = None, receiver: str | None = None, limit: Limit = 100) -> list[dict[str, Any]]:
        """Attempts and what waits, newest first."""
        return [_shown(row) for row in store.rows(_DELIVERIES, {"flip_id": flip_id, "receiver": receiver, "limit": limit})]

    @routes.post("/api/deliveries/{delivery_id}/replay", status_code=202)
    def replay(delivery_id: str) -> Any:
        """Sends a delivery's notice again, under the same webhook id."""
        row = outbox.replay(store, delivery_id, clock())
        if row is None:
            error = {
                "code": "delivery_not_found",
                "message": f"there is no delivery {delivery_id!r}",
                "hint": "GET /api/deliveries lists them",
            }
            return JSONResponse({"error": error}, status_code=404)
        wake()
        return _shown(row)

    return routes


def _shown(row: Any) -> dict[str, Any]:
    """A row as JSON: times with Z, segment and notice as objects."""
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return wording.utc(value)
    return json.loads(value) if name in ("segment", "notice") else value
