"""What `leverwatch explain` says, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from dashboards import answers
from dashboards.api import By, Since, Until, Where
from leverwatch.connection import names
from leverwatch.engine_room import EngineRoom
from leverwatch.explaining import explain
from queries.explain import LIMIT_KEYS
from queries.report import moment
from queries.sandbox import SqlError

A = Annotated[str | None, Query(description="a condition over columns of requests, or slow, slow:ttft_s, treated:speculation; needed")]
B = Annotated[str | None, Query(description="as a; without it the rest of the period")]
Limit = Annotated[int, Query(description="the most keys to answer")]


def router(room: EngineRoom) -> APIRouter:
    """`GET /api/explain`."""
    routes = APIRouter()

    @routes.get("/api/explain", tags=["query"])
    def explained(
        a: A = None, b: B = None, by: By = "", since: Since = None, until: Until = None, where: Where = None, limit: Limit = LIMIT_KEYS
    ) -> Response:
        """One object per key, those first that tell two sets of requests apart best."""
        if not a:
            return answers.error("invalid", "no set a came", "add ?a=slow")
        now = room.clock()
        try:
            period = {name: moment(text, now) if text else None for name, text in (("since", since), ("until", until))}
            return answers.rows(explain(room, a, b, by=names(by) or (), where=where, limit=limit, **period))
        except SqlError as error:
            return answers.error(error.code, error.message, error.hint)
        except ValueError as error:
            return answers.error("invalid", str(error))

    return routes
