"""What `leverwatch policy backtest` says, over HTTP: policies in a body in, what they would have said of the store's history out."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from dashboards import answers
from leverwatch.backtesting import PolicyText, tried
from leverwatch.engine_room import EngineRoom

MOST_BODY_BYTES = 2_000_000
_TAKEN = "send a JSON object {policies: [{where, text}], since, until}"
_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["policies"],
    "properties": {
        "policies": {"type": "array", "items": {"type": "object", "properties": {"where": {"type": "string"}, "text": {"type": "string"}}}},
        "since": {"type": "string", "description": "ISO 8601, or an age such as 7d before the newest effect; else all of history"},
        "until": {"type": "string", "description": "as since"},
    },
}
_DOCS: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": _BODY}}}}


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /api/backtest`."""

    policies: tuple[PolicyText, ...]
    since: str | None = None
    until: str | None = None


def router(room: EngineRoom) -> APIRouter:
    """`POST /api/backtest`, one at a time: it reads much, and judging goes on beside it."""
    routes = APIRouter()
    one = threading.Lock()

    @routes.post("/api/backtest", tags=["query"], openapi_extra=_DOCS)
    async def backtest(request: Request) -> Response:
        """What policies would have said: changes of verdict, recommendations, streams, and what history cannot say."""
        body = await answers.body(request, MOST_BODY_BYTES)
        return await run_in_threadpool(_answer, room, one, body)

    return routes


def _answer(room: EngineRoom, one: threading.Lock, body: bytes) -> Response:
    if not one.acquire(blocking=False):
        return answers.error("busy", "another back-test is running", "try again in a moment")
    try:
        asked = msgspec.json.decode(body, type=Asked)
        found = tried(room.store, asked.policies, asked.since, asked.until, room.clock())
        return Response(msgspec.json.encode(found), media_type="application/json")
    except msgspec.MsgspecError as error:
        return answers.error("invalid", f"the body is not taken: {error}", _TAKEN)
    except ValueError as error:
        return answers.error("invalid", str(error))
    finally:
        one.release()
