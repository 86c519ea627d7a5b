"""Exports in, those of callers that may send out: the tokens in front of OTLP over HTTP and gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2
from starlette.requests import Request
from starlette.responses import Response

from leverwatch import access, origins
from leverwatch.access import Refusal, Tokens
from leverwatch.refused import Refused

CODES = {401: code_pb2.UNAUTHENTICATED, 403: code_pb2.PERMISSION_DENIED}
GRPC_CODES = {401: grpc.StatusCode.UNAUTHENTICATED, 403: grpc.StatusCode.PERMISSION_DENIED}


@dataclass(frozen=True, slots=True)
class HttpGuard:
    """OTLP over HTTP for those who may send. Refusals are the `Status` that OTLP asks for."""

    application: Callable[..., Any]
    tokens: Tokens
    refused: Refused
    names: frozenset[str] = frozenset()
    is_tls: bool = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        found = self._refusal(Request(scope)) if scope["type"] == "http" else None
        answer = self.application if found is None else _status(Request(scope), found)
        await answer(scope, receive, send)

    def _refusal(self, request: Request) -> Refusal | None:
        headers = request.headers
        found = _sending(self.tokens, headers.get("authorization", ""))
        if found is None and "origin" in headers:  # senders have none; a browser has, and a rebound name shows itself by its host
            found = (None if self.is_tls else origins.odd_host(headers, self.names)) or origins.foreign(headers)
        if found:
            self.refused.note("otlp_http", found.code, request.client.host if request.client else "unknown", found.hint)
        return found


class GrpcGuard(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """OTLP over gRPC for those who may send: metadata `authorization: Bearer ...`."""

    def __init__(self, tokens: Tokens, refused: Refused) -> None:
        self._tokens, self._refused = tokens, refused

    async def intercept_service(self, continuation: Callable[[Any], Any], call: Any) -> Any:
        """The handler of a call, or one that refuses it."""
        metadata: Mapping[str, Any] = dict(call.invocation_metadata or ())
        found = _sending(self._tokens, str(metadata.get("authorization", "")))
        return await continuation(call) if found is None else grpc.unary_unary_rpc_method_handler(self._refusing(found))

    def _refusing(self, found: Refusal) -> Any:
        async def refuse(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
            self._refused.note("grpc", found.code, context.peer().rpartition(":")[0], found.hint)
            await context.abort(GRPC_CODES[found.status_code], f"{found.message}; {found.hint}")
            return b""

        return refuse


def _sending(tokens: Tokens, authorization: str) -> Refusal | None:
    if not tokens.guards_sending:
        return None
    token = access.bearer(authorization)
    return access.refusal("ingest", tokens.granted(token) if token else access.NOBODY, showed_token=bool(token))


def _status(request: Request, found: Refusal) -> Response:
    code = CODES.get(found.status_code, code_pb2.INVALID_ARGUMENT)
    status = status_pb2.Status(code=code, message=f"{found.message}; {found.hint}")
    is_json = "json" in request.headers.get("content-type", "")
    content = json_format.MessageToJson(status) if is_json else status.SerializeToString()
    headers = {"www-authenticate": 'Bearer realm="leverwatch"'} if found.status_code == 401 else {}
    return Response(content, found.status_code, headers, "application/json" if is_json else "application/x-protobuf")
