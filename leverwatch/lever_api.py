"""What is asked of a lever beside its effects, over HTTP: the smallest holdout that would answer, and whether it may be widened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query, Response

from dashboards import answers
from dashboards.api import By, Lever
from leverwatch import lever_holdout, lever_widening
from leverwatch.connection import names
from leverwatch.engine_room import EngineRoom
from leverwatch.lever_questions import CHANGE, GAIN_ON, METRIC, WITHIN_HOURS

Change = Annotated[float, Query(description="the gain or loss, as a ratio, that is to be found")]
WithinHours = Annotated[float, Query(description="hours in which nine answers of ten are to come")]
OfMetric = Annotated[str, Query(description="tpot_s, ttft_s, e2e_s or error_rate")]
GainOn = Annotated[float, Query(description="the gain, as a ratio, that is asked for")]


def router(room: EngineRoom) -> APIRouter:
    """`GET /api/holdout` and `GET /api/widening`."""
    routes = APIRouter()

    @routes.get("/api/holdout", tags=["query"])
    def holdout(
        lever: Lever = None,
        change: Change = CHANGE,
        within_hours: WithinHours = WITHIN_HOURS,
        by: By = "",
        metric: OfMetric = METRIC,
    ) -> Response:
        """One object per segment, and one for all traffic: the smallest control share that would find a change, in requests and hours."""
        return _answer(lever, lambda name: lever_holdout.holdout(room.store, name, change, within_hours, names(by) or (), metric))

    @routes.get("/api/widening", tags=["query"])
    def widening(lever: Lever = None, gain_on: GainOn = GAIN_ON) -> Response:
        """One object per segment: whether the lever may be advised for more of its traffic, and what is missing."""
        return _answer(lever, lambda name: lever_widening.widening(room.store, name, gain_on))

    return routes


def _answer(lever: str | None, ask: Callable[[str], pl.DataFrame]) -> Response:
    if lever is None:
        return answers.error("invalid", "no lever came", "add ?lever=speculation")
    try:
        return answers.rows(ask(lever))
    except ValueError as error:
        return answers.error("invalid", str(error))
