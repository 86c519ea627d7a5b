"""The web application of a running server: every package's router, and the routes that say how the server itself is."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse

import alerts.api
import alerts.api_around
import collectors.api
import dashboards.api
import dashboards.questions_api
from alerts.couriers import Couriers
from leverwatch import (
    addresses_api,
    api_description,
    backtest_api,
    calibration_api,
    doctor_api,
    error_shape,
    explain_api,
    house_api,
    known_parameters,
    lever_api,
    policies_api,
    prometheus_page,
)
from leverwatch.engine_room import EngineRoom
from leverwatch.ledger_rows import ledger_rows, ledger_sums, pending
from leverwatch.receiving import Receiving
from leverwatch.refused import Refused
from leverwatch.served_house import ServedHouse
from leverwatch.served_numbers import ServedNumbers
from leverwatch.version import __version__
from leverwatch.worker import Worker


def pages(
    room: EngineRoom,
    worker: Worker,
    couriers: Couriers,
    refused: Refused | None = None,
    receiving: Receiving | None = None,
    numbers: ServedNumbers | None = None,
) -> FastAPI:
    """Pages, reports, SQL, verdicts and health on one port."""
    known = [Depends(known_parameters.only_known)]
    application = FastAPI(title="Leverwatch", version=__version__, docs_url=None, redoc_url=None, dependencies=known)
    known_parameters.refuse_unknown(application)
    error_shape.shape_errors(application)
    api_description.describe(application)
    house = ServedHouse(room, partial(_state, room, worker, receiving))
    application.include_router(dashboards.api.router(room, room.sandbox, room.clock, room.studio, house))
    application.include_router(dashboards.questions_api.router(room.store, room.clock))
    application.include_router(alerts.api.router(room.store, room.clock, couriers.wake, room.config.receivers))
    application.include_router(alerts.api_around.router(room.store, room.clock, room.policies))
    application.include_router(house_api.router(room))
    application.include_router(doctor_api.router(room))
    application.include_router(explain_api.router(room))
    application.include_router(calibration_api.router(room))
    application.include_router(lever_api.router(room))
    application.include_router(backtest_api.router(room))
    application.include_router(policies_api.router(room.sources))
    if receiving is not None:
        application.include_router(collectors.api.evaluations_router(receiving.door))
        application.include_router(addresses_api.router(receiving))
    numbers = numbers or ServedNumbers(room, worker, refused or Refused(), receiving)
    application.include_router(prometheus_page.page(numbers.families))
    application.include_router(_health(room, worker, receiving))
    return application


def _health(room: EngineRoom, worker: Worker, receiving: Receiving | None) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz")
    def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @routes.get("/readyz")
    def readyz(request: Request) -> JSONResponse:
        """Exports are taken and the jobs run; 503 with the reason where they do not. A caller that may not read gets the status alone."""
        state = _state(room, worker, receiving)
        shown = state if request.scope.get("leverwatch.shows_detail", True) else {"status": state["status"]}
        return JSONResponse(shown, status_code=503 if state["errors"] else 200)

    @routes.get("/api/ledger")
    def ledger(sender: str | None = None) -> list[dict[str, Any]]:
        """What became of what each sender sent: received = stored + duplicate + rejected + dropped + pending.

        A partition of Kafka (`kafka:<topic>/<partition>`) has `lag_messages`, how many messages wait to be read.
        """
        return ledger_rows(room, sender)

    return routes


def _state(room: EngineRoom, worker: Worker, receiving: Receiving | None) -> dict[str, Any]:
    """Whether exports are taken and the jobs run, what waits, what became of what came, and what is not as it should be."""
    errors = dict(worker.errors)
    if not room.spool.is_writing:
        errors["spool"] = "the thread that writes exports to disk has ended; restart the server"
    short = room.spool.free_space.shortage()
    if short:
        errors["disk"] = short
    state = {
        "status": "failing" if errors else "ok",
        "backlog_bytes": room.spool.backlog_bytes,
        "errors": errors,
        "pending": pending(room),
        "ledger": ledger_sums(room),
    }
    warnings = dict(receiving.warnings()) if receiving is not None else {}
    warnings |= room.warnings()
    if warnings:
        state["warnings"] = warnings
    return state
