"""Saved questions over HTTP: the store in, `/api/questions` out, those that ship with us and those that people keep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from dashboards import answers, sql_api
from queries import files, saved_questions
from queries.questions import Question, UnknownInvestigationError, investigations
from queries.saved_questions import Draft, SavedQuestionError
from queries.store import Store

_BODY = {
    "type": "object",
    "required": ["name", "title", "sql"],
    "properties": {
        "name": {"type": "string", "description": "1 to 64 small letters, digits and hyphens; one that is there gets another version"},
        "title": {"type": "string", "description": "one line"},
        "sql": {"type": "string", "description": "one reading statement; parameters are written $name"},
        "params": {"type": "object", "additionalProperties": {"type": "string"}, "description": "defaults as text, by name"},
        "created_by": {"type": "string", "description": "who says to have written it"},
    },
    "additionalProperties": False,
}
_DOCS: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/json": {"schema": _BODY}}}}


class _Body(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of POST /api/questions."""

    name: str
    title: str
    sql: str
    params: dict[str, str] = {}
    created_by: str = ""


def router(store: Store, clock: Callable[[], datetime]) -> APIRouter:
    """`GET`, `POST /api/questions`, `GET` and `DELETE /api/questions/{name}`."""
    routes = APIRouter(tags=["query"])

    @routes.get("/api/questions")
    def questions() -> Response:
        """Every question that can be asked by name: those that ship with us, then those that people saved."""
        return answers.json_able([shown(question) for question in (*investigations(), *saved_questions.listed(store))])

    @routes.post("/api/questions", status_code=201, openapi_extra=_DOCS)
    async def save(request: Request) -> Response:
        """Saves a question under a name; the versions before it stay."""
        body = await answers.body(request, sql_api.MOST_BODY_BYTES)
        return await run_in_threadpool(_saved, store, body, clock())

    @routes.get("/api/questions/{name}")
    def one(name: str) -> Response:
        """One question, with every version of it."""
        try:
            found = saved_questions.find(store, name)
        except UnknownInvestigationError as error:
            return answers.error("not_found", str(error), status=404)
        versions = store.rows(files.question("saved_question_versions"), {"name": name})
        return answers.json_able({**shown(found), "versions": [_version(row) for row in versions]})

    @routes.delete("/api/questions/{name}")
    def delete(name: str) -> Response:
        """Removes a saved question; its versions stay to be read by SQL, in `saved_questions`."""
        if not saved_questions.delete(store, name, "", clock()):
            return answers.error("not_found", f"there is no saved question {name[:80]!r}", "GET /api/questions lists them", status=404)
        return answers.json_able({"name": name, "is_deleted": True})

    return routes


def shown(question: Question) -> dict[str, Any]:
    """A question as JSON can hold it."""
    return {
        "name": question.name,
        "title": question.title,
        "answers": question.answers,
        "group": question.group,
        "is_shipped": question.group != saved_questions.GROUP,
        "parameters": [{"name": one.name, "kind": one.kind, "default": one.default, "what": one.what} for one in question.parameters],
        "columns": [{"name": one.name, "unit": one.unit, "what": one.what} for one in question.columns],
        "sql": question.sql,
    }


def _saved(store: Store, body: bytes, now: datetime) -> Response:
    try:
        said = msgspec.json.decode(body, type=_Body)
        version = saved_questions.save(store, Draft(said.name, said.title, said.sql, said.params, said.created_by), now)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return answers.error("invalid", f"the body is not taken: {error}", "send a JSON object {name, title, sql, params, created_by}")
    except SavedQuestionError as error:
        return answers.error("invalid", str(error))
    return answers.json_able({"name": said.name, "version": version}, 201)


def _version(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "created_at": row["created_at"].isoformat()}
