"""OTLP over gRPC: export calls in as raw bytes, acknowledgements out."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2, status_pb2

from collectors.door import BusyError, Door, UnsoundBodyError

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
LIMIT_MESSAGE_BYTES = 64 * 1024 * 1024
ACKNOWLEDGED = b""  # an ExportTraceServiceResponse without partial_success


async def start(door: Door, address: str) -> tuple[grpc.aio.Server, int]:
    """A listening server and its port.

    Raises:
        OSError: the address cannot be bound.
    """
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", LIMIT_MESSAGE_BYTES), ("grpc.so_reuseport", 0)])
    handler = grpc.unary_unary_rpc_method_handler(_export(door), request_deserializer=None, response_serializer=None)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),))
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        msg = f"OTLP/gRPC cannot listen on {address}: {error}"
        raise OSError(msg) from error
    await server.start()
    return server, port


def _export(door: Door) -> Any:
    async def export(body: bytes, context: grpc.aio.ServicerContext) -> bytes:
        try:
            await door.admit(_sender(context.peer()), body)
        except UnsoundBodyError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except BusyError as error:
            context.set_trailing_metadata((("grpc-status-details-bin", _retry_info(error)),))
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        return ACKNOWLEDGED

    return export


def _retry_info(error: BusyError) -> bytes:
    detail = AnyMessage()
    detail.Pack(error_details_pb2.RetryInfo(retry_delay=Duration(seconds=error.retry_after_s)))
    status: bytes = status_pb2.Status(code=code_pb2.RESOURCE_EXHAUSTED, message=str(error), details=[detail]).SerializeToString()
    return status


def _sender(peer: str) -> str:
    """The address without its port: `ipv4:127.0.0.1:5000` is `127.0.0.1`."""
    return peer.split(":", 1)[-1].rsplit(":", 1)[0].strip("[]").replace("%5B", "").replace("%5D", "") or "unknown"
