"""What `leverwatch calibrate` says, over HTTP; asked for with POST it is kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from dashboards import answers
from dashboards.api import Since
from leverwatch.engine_room import EngineRoom
from leverwatch.lever_calibration import calibrate

Lever = Annotated[str | None, Query(description="such as speculation; without it every lever that has cells")]
Splits = Annotated[int | None, Query(description="how often replicas are split in two (default: 50)")]


def router(room: EngineRoom) -> APIRouter:
    """`GET` and `POST /api/calibrations`."""
    routes = APIRouter(tags=["query"])

    @routes.get("/api/calibrations")
    def recommended(lever: Lever = None, since: Since = None, splits: Splits = None) -> Response:
        """One object per lever, metric and block length: by how much its scale is to be widened, and what it is widened by now."""
        return _answer(room, lever, since, splits, apply=False)

    @routes.post("/api/calibrations")
    def applied(lever: Lever = None, since: Since = None, splits: Splits = None) -> Response:
        """As `GET /api/calibrations`, and the scales are widened so from the next block on."""
        return _answer(room, lever, since, splits, apply=True)

    return routes


def _answer(room: EngineRoom, lever: str | None, since: str | None, splits: int | None, *, apply: bool) -> Response:
    try:
        return answers.rows(calibrate(room.store, lever, since, splits, room.clock(), apply=apply))
    except ValueError as error:
        return answers.error("invalid", str(error))
