"""A stranger's SQL over HTTP: a sandbox in, `POST`, `GET` and `DELETE /api/sql`, `GET /api/schema` and files of answers out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from dashboards import answers
from pipeline.metrics import METRICS
from queries import described
from queries.results import FORMATS
from queries.sandbox import Sandbox, SqlError

MOST_BODY_BYTES = 1 << 20
STOP_EVERY_S = 0.1
Answer = TypeVar("Answer")
_SQL_BODY = {
    "type": "object",
    "required": ["sql"],
    "properties": {
        "sql": {"type": "string", "description": "one reading statement; parameters are written $name"},
        "params": {"type": "object", "description": "the parameters' values by name"},
        "limit": {"type": "integer", "description": "the most rows to answer; a cut answer says truncated"},
        "limit_s": {"type": "number", "description": "seconds after which it is stopped, up to the server's most"},
        "format": {"type": "string", "enum": list(FORMATS), "default": "json"},
        "id": {"type": "string", "description": "1 to 64 letters, digits and hyphens, to ask for it or stop it by"},
    },
    "additionalProperties": False,
}
_SQL_DOCS: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": _SQL_BODY}}}}


class SqlQuestion(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of POST /api/sql."""

    sql: str
    params: dict[str, Any] | None = None
    limit: int | None = None
    limit_s: float | None = None
    format: str = "json"
    id: str | None = None


def router(sandbox: Sandbox) -> APIRouter:
    """`/api/sql`, `/api/sql/{id}` and `/api/schema`."""
    routes = APIRouter(tags=["query"])

    @routes.post("/api/sql", openapi_extra=_SQL_DOCS)
    async def ad_hoc_sql(request: Request) -> Response:
        """The rows of one reading SQL statement: `{columns, rows, row_count, truncated, elapsed_s, note}`."""
        body = await answers.body(request, MOST_BODY_BYTES)
        try:
            question = msgspec.json.decode(body, type=SqlQuestion)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            return answers.error(
                "invalid", f"the body is not taken: {error}", "send a JSON object {sql, params, limit, limit_s, format, id}"
            )
        if question.format not in FORMATS:
            return answers.error("invalid", f"format {question.format!r} is unknown; known: {', '.join(FORMATS)}")
        return await unless_hung_up(request, sandbox, question.id, lambda run_id: _asked(sandbox, question, run_id))

    @routes.get("/api/sql/{run_id}")
    def running(run_id: str) -> Response:
        """How long a statement has been running, and what it may take."""
        run = sandbox.runs.find(run_id)
        if run is None:
            return _not_running(run_id)
        limits = {"rows": run.limit_rows, "seconds": run.wall_s, "bytes": sandbox.limits.memory_bytes}
        state = "waiting" if run.is_waiting else "running"
        return answers.json_able({"id": run.run_id, "state": state, "elapsed_s": round(run.elapsed_s, 3), "limits": limits})

    @routes.delete("/api/sql/{run_id}")
    def cancel(run_id: str) -> Response:
        """Stops a statement at once; who asked it gets the error `cancelled`."""
        if not sandbox.runs.stop(run_id):
            return _not_running(run_id)
        return answers.json_able({"id": run_id, "state": "cancelled"})

    @routes.get("/api/schema")
    def schema() -> Response:
        """What can be asked: relations with their columns, types, units and meaning, the metrics' definitions, functions worth knowing."""
        return answers.json_able(
            {
                "tables": described.as_rows(described.relations(sandbox.columns)),
                "metrics": [_metric(metric) for metric in METRICS],
                "functions": msgspec.to_builtins(described.functions()),
            }
        )

    return routes


async def unless_hung_up(request: Request, sandbox: Sandbox, run_id: str | None, ask: Callable[[str], Answer]) -> Answer:
    """What `ask` answers in a thread of its own; when the caller hangs up first, its statement is stopped."""
    named = run_id if run_id is not None else sandbox.runs.new_id()
    asked = asyncio.ensure_future(run_in_threadpool(ask, named))
    left = asyncio.ensure_future(_hung_up(request))
    await asyncio.wait((asked, left), return_when=asyncio.FIRST_COMPLETED)
    while not asked.done():  # again and again: it may still wait for a thread, and is then no run yet
        sandbox.runs.stop(named)
        await asyncio.wait((asked,), timeout=STOP_EVERY_S)
    left.cancel()
    return await asked


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _asked(sandbox: Sandbox, question: SqlQuestion, run_id: str) -> Response:
    try:
        found = sandbox.run(question.sql, question.params, question.limit, limit_s=question.limit_s, run_id=run_id)
        return answers.answer(found, question.format)
    except SqlError as error:
        return answers.error(error.code, error.message, error.hint)


def _not_running(run_id: str) -> Response:
    said = f"no statement with the id {run_id[:80]!r} is running"
    return answers.error("not_found", said, "it has ended, or was never asked", status=404)


def _metric(metric: Any) -> dict[str, Any]:
    texts = ("name", "title", "kind", "unit", "better", "formula", "source", "missing", "numerator", "denominator", "known_when")
    return {**{name: getattr(metric, name) or None for name in texts}, "traps": list(metric.traps)}
