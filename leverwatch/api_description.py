"""The web application's own OpenAPI description in, the same with titles, answers, refusals and examples out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from leverwatch.api_routes import EXAMPLES, MEANINGS, REFUSALS, ROUTES, Answers
from leverwatch.version import __version__

ABOUT = """Numbers, decisions and read-only SQL of one Leverwatch server.

Stored units: seconds, bytes, tokens, ratios from 0 to 1, times in UTC (ISO 8601). null is not known, never 0. Unknown parameters are
refused.
Every refusal is `{error: {code, message, hint}}`. Where tokens are configured, `Authorization: Bearer` carries one."""
GUARDED = (401, 403)
INVALID = 422  # what every route answers to a parameter of the wrong kind
_KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "object": {"type": "object"},
    "list": {"type": "array", "items": {}},
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "hint"],
            "properties": {name: {"type": "string"} for name in ("code", "message", "hint")},
        }
    },
}


def describe(application: FastAPI) -> None:
    """Lets an application describe itself so, the first time that it is asked."""

    def openapi() -> dict[str, Any]:
        if application.openapi_schema is None:
            plain = get_openapi(title="Leverwatch", version=__version__, description=ABOUT, routes=application.routes)
            application.openapi_schema = described(plain)
        return application.openapi_schema

    application.openapi = openapi  # type: ignore[method-assign]


def described(openapi: dict[str, Any]) -> dict[str, Any]:
    """The description with what `ROUTES` says of each route; one that it does not name stays, but for how refusals look."""
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            _complete(operation, ROUTES.get(f"{method.upper()} {path}"))
    schemas = openapi.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Error"] = _ERROR
    openapi["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return openapi


def schema(shape: str) -> dict[str, Any]:
    """The JSON schema of a shape as `api_routes` writes them."""
    if shape.startswith("["):
        return {"type": "array", "items": schema(shape[1:-1])}
    words = [word.partition(":") for word in shape.split()]
    return {"type": "object", "required": [name for name, _, _ in words], "properties": {name: _kind(kind) for name, _, kind in words}}


def _kind(word: str) -> dict[str, Any]:
    name = word.removesuffix("?") or "text"
    return {"anyOf": [_KINDS[name], {"type": "null"}]} if word.endswith("?") else _KINDS[name]


def _complete(operation: dict[str, Any], known: Answers | None) -> None:
    responses, parameters = operation["responses"], operation.get("parameters", [])
    if INVALID in map(int, responses):
        responses[str(INVALID)] = _refusal(INVALID)
    for parameter in parameters:
        name = parameter["name"]
        if name in EXAMPLES and "example" not in parameter:
            parameter["example"] = EXAMPLES[name]
        if name in MEANINGS and not parameter.get("description"):
            parameter["description"] = MEANINGS[name]
    if known is None:
        return
    operation["summary"] = known.title
    if known.shape:
        done = next(code for code in responses if code.startswith("2"))
        responses[done] = {**responses[done], "content": _json(schema(known.shape)) | _others(responses[done])}
    if known.takes:
        operation["security"] = [{"token": []}, {}]
        operation["x-token"] = known.takes
    for code in sorted({*known.refusals, *(GUARDED if known.takes else ()), *((400,) if parameters else ())}):
        responses[str(code)] = _refusal(code)


def _others(response: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer may be beside JSON."""
    return {media: kind for media, kind in response.get("content", {}).items() if media != "application/json"}


def _refusal(code: int) -> dict[str, Any]:
    return {"description": REFUSALS[code], "content": _json({"$ref": "#/components/schemas/Error"})}


def _json(kind: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": kind}}
