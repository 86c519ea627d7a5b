"""The pages and the query endpoints as a router: a reader, a sandbox, a clock and who draws in, HTTP out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import resources
from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query, Request, Response

from dashboards import answers, figures_api, page_list, sql_api, sql_files
from dashboards.house import House
from dashboards.page import Asked, Page
from dashboards.pages import failed
from dashboards.reader import Reader
from dashboards.studio import Studio
from pipeline.metrics import UnknownMetricError
from queries.report import moment
from queries.sandbox import Sandbox, SqlError

_ASSETS = {
    "page.css": "text/css; charset=utf-8",
    "refresh.js": "text/javascript; charset=utf-8",
    "sql.js": "text/javascript; charset=utf-8",
    "notices.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
By = Annotated[str, Query(description="keys, comma-separated: columns of requests, lever.<name>, arm.<name>, hour, day")]
Metrics = Annotated[str | None, Query(description="names, comma-separated; all for every one; without it the core ones")]
Since = Annotated[str | None, Query(description="ISO 8601 or an age such as 90m, 24h, 7d, on started_at")]
Until = Annotated[str | None, Query(description="as since, and exclusive")]
Where = Annotated[str | None, Query(description="an SQL condition over columns of requests")]
Source = Annotated[str, Query(alias="from", description="requests, cells, or auto: requests where they are there and not too many")]
Lever = Annotated[str | None, Query(description="such as speculation; needed")]
Total = Annotated[bool, Query(description="one effect of all the lever's traffic, standardized over its segments")]


def router(reader: Reader, sandbox: Sandbox, clock: Callable[[], datetime], studio: Studio, house: House | None = None) -> APIRouter:
    """Every page of `pages/`, `/figure/...`, `/assets/...`, `/api/report`, `/api/effects`, `/api/break-even`, `/api/sql`, `/api/schema`."""
    routes = APIRouter()

    def asking(request: Request, path: str) -> Asked:
        address = str(request.base_url)
        described, said = request.app.openapi, request.headers
        may_change = bool(request.scope.get("leverwatch.may_change", True))
        return Asked(
            reader, request.query_params, clock(), address, path, page_list.found(), sandbox, described, said, house, may_change, studio
        )

    for page in page_list.found():
        routes.add_api_route(page.path, _drawing(page, asking), methods=["GET", "HEAD"], include_in_schema=False)
    _add_assets(routes)
    _add_reports(routes, reader, clock)

    routes.include_router(figures_api.router(studio, asking))
    routes.include_router(sql_api.router(sandbox))
    routes.include_router(sql_files.router(sandbox, asking))
    return routes


def _drawing(page: Page, asking: Callable[[Request, str], Asked]) -> Callable[[Request], Response]:
    def draw(request: Request) -> Response:
        asked = asking(request, page.path)
        try:
            return answers.page(page.draw(asked))
        except (UnknownMetricError, ValueError) as error:
            return answers.page(failed.draw(asked, 400, _said(error)), 400)

    return draw


def _add_assets(routes: APIRouter) -> None:
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


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _said(error: Exception) -> str:
    """A KeyError's text is its argument in quotes."""
    return str(error.args[0]) if error.args else str(error)
