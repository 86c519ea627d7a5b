"""Silences over HTTP: who is not told of what, for how long; and one flip snoozed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool

from alerts import api_answers, shown, silence_reach, silence_rows, silences
from alerts.api_answers import Limit
from alerts.silences import Asked, Silence, SilenceError, Snooze
from queries.store import Store

State = Annotated[Literal["pending", "active", "ended"] | None, Query(description="without it: all")]
_ASKED = api_answers.body_docs(Asked)
_SNOOZE = api_answers.body_docs(Snooze, ("for_s",))
_HINT = "send a JSON object with lever, policy, segment or receiver, and ends_at or for_s; also starts_at, created_by, comment"


def add(routes: APIRouter, store: Store, clock: Callable[[], datetime], wake: Callable[[], None], receivers: tuple[str, ...] = ()) -> None:
    """Adds `/api/silences` and `POST /api/flips/{flip_id}/snooze`."""

    @routes.get("/api/silences")
    def listed(state: State = None, limit: Limit = 100) -> list[dict[str, Any]]:
        """Silences, newest first, ended ones included."""
        now = clock()
        found = (row for row in silence_rows.listed(store) if state in (None, row.state(now)))
        return [shown.silence(silence, now) for silence, _ in zip(found, range(limit), strict=False)]

    @routes.post("/api/silences", status_code=201, openapi_extra=_ASKED)
    async def begin(request: Request) -> Any:
        """Holds back what recommends, where all matchers that are set match; words may hold `*` and `?`. At most 30 days.

        `notes` say what whoever asks ought to know: that it is about nothing so far, or about what was told already.
        """
        try:
            asked = await api_answers.body(request, Asked)
            now = clock()
            return await run_in_threadpool(_added, store, silences.planned(asked, now, receivers), now)
        except ValueError as wrong:
            return api_answers.error("invalid", str(wrong), "" if isinstance(wrong, SilenceError) else _HINT)

    @routes.delete("/api/silences/{silence_id}")
    def end(silence_id: str) -> Any:
        """Ends a silence now, by its id or the beginning of it: what still stands and was held back is sent."""
        now = clock()
        try:
            ended = silence_rows.end(store, silence_id, now)
        except SilenceError as wrong:
            return api_answers.error("silence_not_found", str(wrong), "GET /api/silences lists them", status=404)
        wake()
        return shown.silence(ended, now)

    @routes.post("/api/flips/{flip_id}/snooze", status_code=201, openapi_extra=_SNOOZE)
    async def snooze(flip_id: str, request: Request) -> Any:
        """Holds back one flip for so many seconds, from every receiver that has not got it yet."""
        try:
            found = await run_in_threadpool(silence_rows.flip_of, store, flip_id)
        except SilenceError as wrong:
            return api_answers.error("flip_not_found", str(wrong), "GET /api/flips lists them", status=404)
        try:
            asked = await api_answers.body(request, Snooze)
            now = clock()
            return await run_in_threadpool(_added, store, silences.snoozed(found, asked, now), now)
        except ValueError as wrong:
            return api_answers.error("invalid", str(wrong), "send a JSON object with for_s; also created_by, comment")


def _added(store: Store, silence: Silence, now: datetime) -> dict[str, Any]:
    return {**shown.silence(silence_rows.add(store, silence), now), "notes": silence_reach.notes(store, silence)}
