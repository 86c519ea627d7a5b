"""The URL of the SQL page in, its answer as a file out: JSON, CSV, Arrow, Parquet."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response

from dashboards import answers, sql_api, sql_asked
from dashboards.page import Asked
from queries.results import SqlResult
from queries.sandbox import Sandbox, SqlError

KINDS: dict[str, tuple[str, Callable[[SqlResult], str | bytes]]] = {
    "csv": ("text/csv; charset=utf-8", SqlResult.csv_for_spreadsheets),
    "json": ("application/json", SqlResult.json_text),
    "arrow": ("application/vnd.apache.arrow.stream", SqlResult.arrow),
    "parquet": ("application/vnd.apache.parquet", SqlResult.parquet),
}


def router(sandbox: Sandbox, asking: Callable[[Request, str], Asked]) -> APIRouter:
    """`/answer.csv` and the like."""
    routes = APIRouter()

    @routes.get("/answer.{kind}", include_in_schema=False)
    async def answer(kind: str, request: Request) -> Response:
        """The answer to the statement of a URL, up to the rows that the server gives unasked."""
        if kind not in KINDS:
            return answers.error("not_found", f"format {kind[:40]!r} is unknown; known: {', '.join(KINDS)}", status=404)
        if not sql_asked.runs_by_itself(request.headers):
            return answers.error("refused", "another site led here, and nobody clicked", "open the SQL page and ask there")
        asked = asking(request, "/sql")
        return await sql_api.unless_hung_up(request, sandbox, None, lambda run_id: _file(asked, kind, run_id))

    return routes


def _file(asked: Asked, kind: str, run_id: str) -> Response:
    try:
        statement = sql_asked.stated(asked)
        if statement is None:
            return answers.error("invalid", "no statement came", "add ?sql=... or ?question=...")
        limits = asked.sandbox.limits if asked.sandbox else None
        found = sql_asked.answered(asked, statement, run_id, limits.rows if limits else None)
    except SqlError as error:
        return answers.error(error.code, error.message, error.hint)
    except ValueError as error:
        return answers.error("invalid", str(error))
    media, written = KINDS[kind]
    content = written(found)
    name = statement.question.name if statement.question else "answer"
    return answers.download(content if isinstance(content, bytes) else content.encode(), media, f"{name}.{kind}")
