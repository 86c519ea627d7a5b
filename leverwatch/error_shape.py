"""What the web framework refuses by itself in, the same `{error: {code, message, hint}}` as every other refusal out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from dashboards import answers
from dashboards.pages import failed

LONGEST_INPUT = 60
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}


def shape_errors(application: FastAPI) -> None:
    """Answers in our shape where a parameter has a wrong value, or there is no such route."""

    @application.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> Response:
        return answers.error("invalid", "; ".join(_sentence(problem) for problem in error.errors()), "/docs has what is taken", 422)

    @application.exception_handler(ClientDisconnect)
    def left(request: Request, _error: ClientDisconnect) -> Response:
        """Nobody reads it; it is no fault of the server, whose log has none of it."""
        return answers.error("cancelled", f"{request.method} {request.url.path}: the caller hung up before its body was there")

    @application.exception_handler(Exception)
    def broken(request: Request, _error: Exception) -> Response:
        """The fault itself goes to the log, where the framework raises it again."""
        said = f"{request.method} {request.url.path} failed: this is a fault of the server, and stands in its log"
        return _page(500, said) if _wants_page(request) else answers.error("internal", said, status=500)

    @application.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and _wants_page(request):
            return _page(404, f"Nothing is at {request.url.path}.")
        hint = "send less at once" if error.status_code == 413 else "/docs lists the routes"
        code = _CODES.get(error.status_code, "refused")
        answer = answers.error(code, f"{request.method} {request.url.path}: {error.detail}", hint, error.status_code)
        answer.headers.update(error.headers or {})
        return answer


def _wants_page(request: Request) -> bool:
    path = request.url.path
    is_shallow = path.count("/") == 1  # a page's links are relative to the root
    return request.method == "GET" and is_shallow and "text/html" in request.headers.get("accept", "")


def _page(status: int, said: str) -> Response:
    return answers.page(failed.draw(None, status, said), status)


def _sentence(problem: Mapping[str, Any]) -> str:
    """`limit: Input should be less than or equal to 10000, got '99999'`."""
    where = ".".join(str(part) for part in problem["loc"][1:]) or "the request"
    came = problem.get("input")
    got = "" if came is None or isinstance(came, dict | list) else f", got {str(came)[:LONGEST_INPUT]!r}"
    return f"{where}: {problem['msg']}{got}"
