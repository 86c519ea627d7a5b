"""What `leverwatch doctor` says, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from leverwatch.doctor import diagnose
from leverwatch.engine_room import EngineRoom
from queries.report import ReportError

Since = Annotated[
    str | None,
    Query(description="an age before the newest event, such as 15m, or ISO 8601; default: 1h, or the newest million requests"),
]


def router(room: EngineRoom) -> APIRouter:
    """`GET /api/doctor`."""
    routes = APIRouter(tags=["house"])

    @routes.get("/api/doctor")
    def doctor(since: Since = None) -> JSONResponse:
        """What can and cannot be known of each replica, why, and what brings it; `status` as the command's exit status."""
        try:
            return JSONResponse(diagnose(room, since))
        except ReportError as error:
            return JSONResponse({"error": {"code": "invalid", "message": str(error), "hint": ""}}, status_code=400)

    return routes
