"""The pages and the query endpoints as a router: a reader, a sandbox and a clock in, HTTP out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import resources
from typing import Annotated, Any

import msgspec
import polars as pl
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from dashboards import answers
from dashboards.pages import docs, segment
from dashboards.reader import Reader
from queries.report import moment
from queries.results import FORMATS
from queries.sandbox import Sandbox, SqlError

MOST_BODY_BYTES = 1 << 20
_ASSETS = {"page.css": "text/css; charset=utf-8", "refresh.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
_SQL_BODY = {
    "type": "object",
    "required": ["sql"],
    "properties": {
        "sql": {"type": "string", "description": "one reading statement; parameters are written $name"},
        "params": {"type": "object", "description": "the parameters' values by name"},
        "limit": {"type": "integer", "description": "the most rows to answer; a cut answer says truncated"},
        "format": {"type": "string", "enum": list(FORMATS), "default": "json"},
    },
}
By = Annotated[str, Query(description="keys, comma-separated: columns of requests, lever.<name>, arm.<name>, hour, day")]
Metrics = Annotated[str | None, Query(description="names, comma-separated; all for every one; without it the core ones")]
Since = Annotated[str | None, Query(description="ISO 8601 or an age such as 90m, 24h, 7d, on started_at")]
Until = Annotated[str | None, Query(description="as since, and exclusive")]
Where = Annotated[str | None, Query(description="an SQL condition over columns of requests")]
Source = Annotated[str, Query(alias="from", description="requests, cells, or auto: requests where they are there and not too many")]
Lever = Annotated[str | None, Query(description="such as speculation; needed")]
Total = Annotated[bool, Query(description="one effect of all the lever's traffic, standardized over its segments")]
_SQL_DOCS: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": _SQL_BODY}}}}


class SqlQuestion(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of POST /api/sql."""

    sql: str
    params: dict[str, Any] | None = None
    limit: int | None = None
    format: str = "json"


def router(reader: Reader, sandbox: Sandbox, clock: Callable[[], datetime]) -> APIRouter:
    """`/`, `/segment`, `/docs`, `/assets/...`, `/api/report`, `/api/effects`, `/api/break-even` and `/api/sql`."""
    routes = APIRouter()
    _add_pages(routes, reader, clock)
    _add_reports(routes, reader, clock)

    @routes.post("/api/sql", tags=["query"], openapi_extra=_SQL_DOCS)
    async def ad_hoc_sql(request: Request) -> Response:
        """The rows of one reading SQL statement: `{columns, rows, row_count, truncated, elapsed_s}`."""
        body = await answers.body(request, MOST_BODY_BYTES)
        return await run_in_threadpool(_ask, sandbox, body)

    return routes


def _add_pages(routes: APIRouter, reader: Reader, clock: Callable[[], datetime]) -> None:
    @routes.get("/", include_in_schema=False)
    @routes.get("/segment", include_in_schema=False)
    def segment_page(request: Request) -> Response:
        try:
            return answers.page(segment.draw(reader, request.query_params, clock()))
        except ValueError as error:
            return answers.error("invalid", str(error))

    @routes.get("/docs", include_in_schema=False)
    def docs_page(request: Request) -> Response:
        return answers.page(docs.draw(request.app.openapi(), str(request.base_url)))

    @routes.get("/assets/{name}", include_in_schema=False)
    def asset(name: str) -> Response:
        if name not in _ASSETS:
            return answers.error("unknown", f"no asset {name!r}; known: {', '.join(_ASSETS)}", status=404)
        return answers.asset((resources.files("dashboards") / "assets" / name).read_bytes(), _ASSETS[name])


def _add_reports(routes: APIRouter, reader: Reader, clock: Callable[[], datetime]) -> None:
    @routes.get("/api/report", tags=["query"])
    def report(
        by: By = "", metrics: Metrics = None, since: Since = None, until: Until = None, where: Where = None, source: Source = "auto"
    ) -> Response:
        """One object per segment: the keys, `requests`, then each metric with its n, coverage and provenance."""
        now = clock()
        try:
            period = {name: moment(text, now) if text else None for name, text in (("since", since), ("until", until))}
            chosen = _listed(metrics) if metrics else None
            return answers.rows(reader.report(by=_listed(by), metrics=chosen, where=where, source=source, **period))
        except SqlError as error:
            return answers.error(error.code, error.message, error.hint)
        except (KeyError, ValueError) as error:
            return answers.error("invalid", _said(error))

    @routes.get("/api/effects", tags=["query"])
    def effects(lever: Lever = None, by: By = "", total: Total = False, since: Since = None, until: Until = None) -> Response:
        """One object per segment and metric: a lever's effect with its interval; by keys, or in total, standardized over segments."""

        def asked(lever: str, keys: Sequence[str]) -> pl.DataFrame:
            now = clock()
            ends = [moment(text, now) if text else None for text in (since, until)]
            return reader.effects(lever, keys, *ends, total=total)

        return _of_lever(asked, lever, by)

    @routes.get("/api/break-even", tags=["query"])
    def break_even(lever: Lever = None, by: By = "") -> Response:
        """One object per segment and key: up to where a lever pays, from where it loses, or that it is not resolved yet."""
        return _of_lever(reader.break_even, lever, by)


def _of_lever(ask: Callable[[str, Sequence[str]], pl.DataFrame], lever: str | None, by: str) -> Response:
    if lever is None:
        return answers.error("invalid", "no lever came", "add ?lever=speculation")
    try:
        return answers.rows(ask(lever, _listed(by)))
    except (KeyError, ValueError) as error:
        return answers.error("invalid", _said(error))


def _ask(sandbox: Sandbox, body: bytes) -> Response:
    try:
        question = msgspec.json.decode(body, type=SqlQuestion)
        if question.format not in FORMATS:
            return answers.error("invalid", f"format {question.format!r} is unknown; known: {', '.join(FORMATS)}")
        return answers.answer(sandbox.run(question.sql, question.params, question.limit), question.format)
    except msgspec.MsgspecError as error:
        return answers.error("invalid", f"the body is no question: {error}", "send a JSON object {sql, params, limit, format}")
    except SqlError as error:
        return answers.error(error.code, error.message, error.hint)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _said(error: Exception) -> str:
    """A KeyError's text is its argument in quotes."""
    return str(error.args[0]) if error.args else str(error)
