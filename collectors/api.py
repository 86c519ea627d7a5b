"""OTLP over HTTP: POST /v1/traces in protobuf or JSON, plain or gzip, in; the OTLP answers out."""

from __future__ import annotations

import asyncio
import zlib

from fastapi import APIRouter, Request, Response
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collectors.door import BusyError, Door, UnsoundBodyError
from collectors.otlp_json import OtlpJsonError, to_protobuf

PROTOBUF, JSON = "application/x-protobuf", "application/json"
LIMIT_BODY_BYTES = 64 * 1024 * 1024


class _TooLargeError(ValueError):
    """A body beyond the bound, as sent or as inflated."""


def router(door: Door) -> APIRouter:
    """The OTLP/HTTP routes."""
    routes = APIRouter()

    @routes.post("/v1/traces")
    async def traces(request: Request) -> Response:
        kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind not in (PROTOBUF, JSON):
            return _refusal(PROTOBUF, 415, f"content-type {kind!r}; taken: {PROTOBUF}, {JSON}")
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip"):
            return _refusal(kind, 415, f"content-encoding {encoding!r}; taken: gzip, identity")
        try:
            body = await _body(request, encoding)
            await door.admit(_sender(request), await asyncio.to_thread(to_protobuf, body) if kind == JSON else body)
        except _TooLargeError as error:
            return _refusal(kind, 413, str(error))
        except (OtlpJsonError, UnsoundBodyError, zlib.error) as error:
            return _refusal(kind, 400, str(error))
        except BusyError as error:
            return _refusal(kind, 503 if door.closed else 429, str(error), {"retry-after": str(error.retry_after_s)})
        answer = ExportTraceServiceResponse()
        content = json_format.MessageToJson(answer) if kind == JSON else answer.SerializeToString()
        return Response(content, media_type=kind)

    return routes


async def _body(request: Request, encoding: str) -> bytes:
    inflate = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
    pieces, size = [], 0
    async for chunk in request.stream():
        piece = inflate.decompress(chunk, LIMIT_BODY_BYTES + 1 - size) if inflate else chunk
        size += len(piece)
        if size > LIMIT_BODY_BYTES or (inflate and inflate.unconsumed_tail):
            msg = f"the body is larger than {LIMIT_BODY_BYTES} bytes"
            raise _TooLargeError(msg)
        pieces.append(piece)
    if inflate and (not inflate.eof or inflate.unused_data):
        msg = "bytes follow the end of the gzip body" if inflate.eof else "the gzip body is cut short"
        raise zlib.error(msg)
    return b"".join(pieces)


def _sender(request: Request) -> str:
    named = request.headers.get("x-leverwatch-sender", "")
    return named[:200] if named else (request.client.host if request.client else "unknown")


def _refusal(kind: str, status_code: int, message: str, headers: dict[str, str] | None = None) -> Response:
    code = {429: code_pb2.RESOURCE_EXHAUSTED, 503: code_pb2.UNAVAILABLE}.get(status_code, code_pb2.INVALID_ARGUMENT)
    status = status_pb2.Status(code=code, message=message)
    content = json_format.MessageToJson(status) if kind == JSON else status.SerializeToString()
    return Response(content, status_code=status_code, media_type=kind, headers=headers)
