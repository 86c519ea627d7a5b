"""OTLP over HTTP: POST /v1/traces, /v1/metrics and /v1/logs in protobuf or JSON, plain, gzip or zstd, in; the OTLP answers out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2

from collectors.answers import answer
from collectors.door import BusyError, Door
from collectors.entry import TOO_LARGE, UnsoundBodyError
from collectors.evaluations import Evaluation
from collectors.inflate import ENCODINGS, BrokenBodyError, TooLargeError, whole
from collectors.otlp_json import OtlpJsonError, to_protobuf

PROTOBUF, JSON = "application/x-protobuf", "application/json"
LIMIT_BODY_BYTES = 64 * 1024 * 1024
SIGNALS = ("traces", "metrics", "logs")
NO_JSON, NOT_INFLATED = "body is not sound OTLP/JSON", "body that cannot be inflated"
OTHER_TYPE, OTHER_ENCODING = "content-type that is not taken", "content-encoding that is not taken"
CODES = {404: code_pb2.NOT_FOUND, 429: code_pb2.RESOURCE_EXHAUSTED, 503: code_pb2.UNAVAILABLE}


def router(door: Door) -> APIRouter:
    """The OTLP/HTTP routes."""
    routes = APIRouter()
    for signal in SIGNALS:
        routes.add_api_route(f"/v1/{signal}", _route(door, signal), methods=["POST"], name=signal)
    return routes


def requests_router(door: Door) -> APIRouter:
    """`POST /v1/requests`, beside the OTLP routes: a JSON array of canonical requests, as `leverwatch load` sends them."""
    routes = APIRouter()

    @routes.post("/v1/requests")
    async def requests(request: Request) -> Response:
        try:
            body = await whole(request.stream(), "identity", LIMIT_BODY_BYTES)
            taken = await door.take("requests", sender_of(request), body)
        except TooLargeError as error:
            door.refuse("requests", sender_of(request), TOO_LARGE)
            return _api_error(413, "too_large", str(error), "send fewer at once")
        except UnsoundBodyError as error:
            return _api_error(400, "requests", str(error), "an array of objects with request_id and started_at")
        except BusyError as error:
            return _api_error(503 if error.is_stopping else 429, "busy", str(error), "send the same again later", error.retry_after_s)
        return JSONResponse({"taken": taken.items - taken.rejected_count, "rejected": taken.rejected_count, "message": taken.message})

    return routes


def elsewhere_router(web_port: int) -> APIRouter:
    """What every other path of the OTLP port answers: which paths there are, and where the rest is."""
    routes = APIRouter()
    paths = ", ".join(f"/v1/{signal}" for signal in SIGNALS)

    @routes.api_route("/{path:path}", methods=["GET", "HEAD", "POST", "PUT", "DELETE"])
    async def elsewhere(request: Request) -> Response:
        shown = request.url.path[:200]
        message = f"{request.method} {shown} is nothing here: OTLP is sent by POST to {paths}; pages and API are on port {web_port}"
        return _refusal(PROTOBUF if PROTOBUF in request.headers.get("content-type", "") else JSON, 404, message)

    return routes


def evaluations_router(door: Door) -> APIRouter:
    """`POST /api/evaluations`, for the web port."""
    routes = APIRouter(tags=["evaluations"])

    @routes.post("/api/evaluations", openapi_extra={"requestBody": {"required": True, "content": {JSON: {"schema": _one_or_many()}}}})
    async def evaluations(request: Request) -> Response:
        """Takes one quality score as a JSON object, or many as an array; answers once they are durable.

        `taken` counts those that were accepted. One that is there already is stored once: `/api/ledger` counts it as a duplicate.
        """
        try:
            body = await whole(request.stream(), "identity", LIMIT_BODY_BYTES)
            taken = await door.take("evaluations", sender_of(request), body)
        except TooLargeError as error:
            door.refuse("evaluations", sender_of(request), TOO_LARGE)
            return _api_error(413, "too_large", str(error), "send fewer at once")
        except UnsoundBodyError as error:
            return _api_error(400, "evaluation", str(error), "one object, or an array of objects, as under /docs")
        except BusyError as error:
            return _api_error(503 if error.is_stopping else 429, "busy", str(error), "send the same again later", error.retry_after_s)
        return JSONResponse({"taken": taken.items})

    return routes


def _one_or_many() -> dict[str, Any]:
    one = msgspec.json.schema(Evaluation)["$defs"]["Evaluation"]
    return {"anyOf": [one, {"type": "array", "items": one}]}


def _route(door: Door, signal: str) -> Callable[[Request], Awaitable[Response]]:
    async def export(request: Request) -> Response:
        kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind not in (PROTOBUF, JSON):
            door.refuse(signal, sender_of(request), OTHER_TYPE)
            return _refusal(PROTOBUF, 415, f"content-type {kind!r}; taken: {PROTOBUF}, {JSON}")
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ENCODINGS:
            door.refuse(signal, sender_of(request), OTHER_ENCODING)
            return _refusal(kind, 415, f"content-encoding {encoding!r}; taken: {', '.join(ENCODINGS)}")
        try:
            body = await whole(request.stream(), encoding, LIMIT_BODY_BYTES)
            body = await asyncio.to_thread(to_protobuf, body, signal) if kind == JSON else body
            taken = await door.take(signal, sender_of(request), body)
        except TooLargeError as error:
            door.refuse(signal, sender_of(request), TOO_LARGE)
            return _refusal(kind, 413, str(error))
        except (OtlpJsonError, BrokenBodyError) as error:
            door.refuse(signal, sender_of(request), NO_JSON if isinstance(error, OtlpJsonError) else NOT_INFLATED)
            return _refusal(kind, 400, str(error))
        except UnsoundBodyError as error:  # the door has noted it
            return _refusal(kind, 400, str(error))
        except BusyError as error:
            return _refusal(kind, 503 if error.is_stopping else 429, str(error), {"retry-after": str(error.retry_after_s)})
        message = answer(signal, taken)
        content = json_format.MessageToJson(message) if kind == JSON else message.SerializeToString()
        return Response(content, media_type=kind)

    return export


def sender_of(request: Request) -> str:
    """Who sends: the name it gives itself, else its address."""
    named = request.headers.get("x-leverwatch-sender", "")
    return named[:200] if named else (request.client.host if request.client else "unknown")


def _refusal(kind: str, status_code: int, message: str, headers: dict[str, str] | None = None) -> Response:
    status = status_pb2.Status(code=CODES.get(status_code, code_pb2.INVALID_ARGUMENT), message=message)
    content = json_format.MessageToJson(status) if kind == JSON else status.SerializeToString()
    return Response(content, status_code=status_code, media_type=kind, headers=headers)


def _api_error(status_code: int, code: str, message: str, hint: str, retry_after_s: int | None = None) -> Response:
    headers = {"retry-after": str(retry_after_s)} if retry_after_s else None
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status_code, headers)
