"""The application's OpenAPI description in, a page that lists every route out; it needs no script and no other host."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from dashboards import templating
from dashboards.page import Asked, Page

# What an example asks for: by path, its query and its body. A route without one is asked without.
_QUERIES = {
    "/api/report": {"by": "model", "since": "24h"},
    "/api/effects": {"lever": "speculation"},
    "/api/break-even": {"lever": "speculation"},
    "/api/holdout": {"lever": "speculation"},
    "/api/widening": {"lever": "speculation"},
    "/api/explain": {"a": "slow", "since": "24h"},
    "/api/flips": {"limit": "5"},
}
_BODIES: dict[str, dict[str, Any]] = {
    "/api/sql": {"sql": "select model, count(*) as requests from requests group by model", "limit": 100},
    "/api/silences": {"lever": "speculation", "for_s": 3600, "comment": "known"},
    "/api/flips/{flip_id}/snooze": {"for_s": 3600},
}
_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a route, or one key of its body."""

    name: str
    where: str
    type: str
    default: str
    text: str


@dataclass(frozen=True)
class Route:
    """One method of one path."""

    key: str
    method: str
    path: str
    text: str
    group: str
    parameters: list[Parameter]
    example: str

    @property
    def is_described(self) -> bool:
        """Whether any parameter has words beside its type."""
        return any(parameter.text for parameter in self.parameters)


def draw(asked: Asked) -> str:
    """The page as HTML; examples name the server's own address."""
    openapi = asked.openapi()
    known = [
        _route(path, method, operation, openapi, asked.base_url.rstrip("/"))
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
        if method in _METHODS
    ]
    return templating.render("docs.html", asked=asked, routes=known, version=openapi["info"]["version"])


PAGE = Page("/docs", "API", 90, draw)


def _route(path: str, method: str, operation: Mapping[str, Any], openapi: Mapping[str, Any], address: str) -> Route:
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", [])]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    text = operation.get("description") or operation.get("summary", "")
    group = ", ".join(operation.get("tags", []))
    example = _example(path, method, address)
    return Route(f"{method}{path}", method.upper(), path, text, group, parameters + _body(_resolved(body, openapi)), example)


def _parameter(parameter: Mapping[str, Any]) -> Parameter:
    return _described(parameter["name"], parameter["in"], parameter.get("required", False), parameter["schema"], parameter)


def _body(schema: Mapping[str, Any]) -> list[Parameter]:
    required = schema.get("required", [])
    return [_described(name, "body", name in required, kind, kind) for name, kind in schema.get("properties", {}).items()]


def _described(name: str, where: str, is_required: bool, schema: Mapping[str, Any], said: Mapping[str, Any]) -> Parameter:
    default = "required" if is_required else json.dumps(schema["default"]) if schema.get("default") is not None else "none"
    return Parameter(name, where, _type(schema), default, said.get("description", ""))


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in words: `integer, 1 to 10000`, `one of table, json`."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"] if one.get("type") != "null")
    kind = str(schema.get("type") or str(schema.get("$ref", "any")).rpartition("/")[2])
    low, high = schema.get("minimum"), schema.get("maximum")
    return kind if low is None or high is None else f"{kind}, {low} to {high}"


def _resolved(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    named: Mapping[str, Any] = openapi["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return named


def _example(path: str, method: str, address: str) -> str:
    """A command for a shell."""
    query = f"?{urlencode(_QUERIES[path])}" if path in _QUERIES else ""
    has_body = method == "post" and path in _BODIES
    words = ["curl", *(["-X", method.upper()] if method != "get" and not has_body else []), f"{address}{path}{query}"]
    if has_body:
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(_BODIES[path])]
    return shlex.join(words)
