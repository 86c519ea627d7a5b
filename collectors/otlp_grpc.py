"""OTLP over gRPC: export calls of traces, metrics and logs in as raw bytes, acknowledgements out."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2, status_pb2

from collectors.answers import answer
from collectors.door import BusyError, Door
from collectors.entry import Entry, UnsoundBodyError

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
SERVICES = {
    "traces": SERVICE,
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
}
LIMIT_MESSAGE_BYTES = 64 * 1024 * 1024
ACKNOWLEDGED = b""  # an ExportTraceServiceResponse without partial_success


async def start(door: Door, address: str, interceptors: Any = (), credentials: Any = None) -> tuple[grpc.aio.Server, int]:
    """A listening server and its port; with credentials it speaks TLS.

    Raises:
        OSError: the address cannot be bound.
    """
    options = [("grpc.max_receive_message_length", LIMIT_MESSAGE_BYTES), ("grpc.so_reuseport", 0)]
    server = grpc.aio.server(options=options, interceptors=interceptors)
    exports = {"traces": _export_traces(door), "metrics": _export(door, "metrics"), "logs": _export(door, "logs")}
    for signal, service in SERVICES.items():
        handler = grpc.unary_unary_rpc_method_handler(exports[signal], request_deserializer=None, response_serializer=None)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
    try:
        port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    except RuntimeError as error:
        msg = f"OTLP/gRPC cannot listen on {address}: {error}"
        raise OSError(msg) from error
    await server.start()
    return server, port


def _export_traces(door: Door) -> Any:
    async def export(body: bytes, context: grpc.aio.ServicerContext) -> bytes:
        try:
            await door.admit(_sender(context.peer()), body)
        except (UnsoundBodyError, BusyError) as error:
            await _refuse(context, error)
        return ACKNOWLEDGED

    return export


def _export(door: Door, signal: str) -> Any:
    async def export(body: bytes, context: grpc.aio.ServicerContext) -> bytes:
        taken = Entry(b"", 0)
        try:
            taken = await door.take(signal, _sender(context.peer()), body)
        except (UnsoundBodyError, BusyError) as error:
            await _refuse(context, error)
        answered: bytes = answer(signal, taken).SerializeToString()
        return answered

    return export


async def _refuse(context: grpc.aio.ServicerContext, error: UnsoundBodyError | BusyError) -> None:
    if isinstance(error, UnsoundBodyError):
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return
    context.set_trailing_metadata((("grpc-status-details-bin", _retry_info(error)),))
    await context.abort(grpc.StatusCode.UNAVAILABLE if error.is_stopping else grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))


def _retry_info(error: BusyError) -> bytes:
    detail = AnyMessage()
    detail.Pack(error_details_pb2.RetryInfo(retry_delay=Duration(seconds=error.retry_after_s)))
    code = code_pb2.UNAVAILABLE if error.is_stopping else code_pb2.RESOURCE_EXHAUSTED
    status: bytes = status_pb2.Status(code=code, message=str(error), details=[detail]).SerializeToString()
    return status


def _sender(peer: str) -> str:
    """The address without its port: `ipv4:127.0.0.1:5000` is `127.0.0.1`."""
    return peer.split(":", 1)[-1].rsplit(":", 1)[0].strip("[]").replace("%5B", "").replace("%5D", "") or "unknown"
