"""What the alerts' routes share: parameters and bodies in, checked values and errors out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import HTTPException, Query, Request
from fastapi.responses import JSONResponse

from alerts.levers import LEVERS, unknown
from queries.report import moment

MOST_BODY_BYTES = 1 << 16
Lever = Annotated[str | None, Query(description="such as speculation")]
Since = Annotated[str | None, Query(description="ISO 8601 or an age such as 90m, 24h, 7d")]
Until = Annotated[str | None, Query(description="as since, and exclusive")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="the most rows to answer")]
Asked = TypeVar("Asked", bound=msgspec.Struct)


def error(code: str, message: str, hint: str = "", status: int = 400) -> JSONResponse:
    """`{error: {code, message, hint}}`."""
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)


def filters(now: datetime, since: str | None, until: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The filters of a question: its period as times, and what else it takes; null where one is not set.

    Raises:
        ValueError: an unknown lever, with the nearest, or a time that cannot be read.
    """
    lever = more.get("lever")
    if lever is not None and lever not in LEVERS:
        raise ValueError(unknown("lever", lever, LEVERS))
    return {**more, "since": moment(since, now) if since else None, "until": moment(until, now) if until else None}


async def body(request: Request, kind: type[Asked]) -> Asked:
    """A request's JSON body.

    Raises:
        HTTPException: 413, it is too long.
        ValueError: it is no JSON, or has a key or value that is not taken.
    """
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > MOST_BODY_BYTES:
            raise HTTPException(413, f"the body is longer than {MOST_BODY_BYTES:,} bytes")
    try:
        return msgspec.json.decode(bytes(read), type=kind)
    except msgspec.MsgspecError as wrong:
        msg = f"the body is not taken: {wrong}"
        raise ValueError(msg) from wrong


def body_docs(kind: type[msgspec.Struct], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """A body's description for OpenAPI, from the struct that reads it."""
    _, parts = msgspec.json.schema_components([kind])
    schema = {**parts[kind.__name__], "required": list(required)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
