"""What the web framework refuses by itself in, the same `{error: {code, message, hint}}` as every other refusal out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from dashboards import answers

LONGEST_INPUT = 60
_CODES = {404: "not_found", 405: "method_not_allowed"}


def shape_errors(application: FastAPI) -> None:
    """Answers in our shape where a parameter has a wrong value, or there is no such route."""

    @application.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> Response:
        return answers.error("invalid", "; ".join(_sentence(problem) for problem in error.errors()), "/docs has what is taken", 422)

    @application.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code, "refused")
        answer = answers.error(code, f"{request.method} {request.url.path}: {error.detail}", "/docs lists the routes", error.status_code)
        answer.headers.update(error.headers or {})
        return answer


def _sentence(problem: Mapping[str, Any]) -> str:
    """`limit: Input should be less than or equal to 10000, got '99999'`."""
    where = ".".join(str(part) for part in problem["loc"][1:]) or "the request"
    came = problem.get("input")
    got = "" if came is None or isinstance(came, dict | list) else f", got {str(came)[:LONGEST_INPUT]!r}"
    return f"{where}: {problem['msg']}{got}"
