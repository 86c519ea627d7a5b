"""Bodies of OTLP exports in, sent over gRPC one after the other, tried again for a while when the receiver is full or away."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Self

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from demo.telemetry import Body, Signal

SERVICE = "/opentelemetry.proto.collector"
EXPORTS: Mapping[Signal, tuple[str, Any, str]] = MappingProxyType(
    {
        "traces": (f"{SERVICE}.trace.v1.TraceService/Export", ExportTraceServiceResponse, "rejected_spans"),
        "metrics": (f"{SERVICE}.metrics.v1.MetricsService/Export", ExportMetricsServiceResponse, "rejected_data_points"),
        "logs": (f"{SERVICE}.logs.v1.LogsService/Export", ExportLogsServiceResponse, "rejected_log_records"),
    }
)
AGAIN = frozenset({grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
RECONNECTING = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 2000))
"""gRPC waits by itself before it dials again, two minutes if it is let."""


class SendError(RuntimeError):
    """An export was refused for good, or was not taken within the sender's patience."""


class Sender:
    """Sends to one address, such as `127.0.0.1:4317`, trying again for `patience_s` unless `give_up` says so. Use it in a `with` block."""

    def __init__(
        self,
        address: str,
        *,
        patience_s: float = 60.0,
        timeout_s: float = 30.0,
        give_up: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._address, self._patience_s, self._timeout_s = address, patience_s, timeout_s
        self._give_up, self._clock, self._sleep = give_up, clock, sleep
        self._channel = grpc.insecure_channel(address, options=RECONNECTING)
        self._exports = {
            signal: self._channel.unary_unary(path, response_deserializer=answer.FromString)
            for signal, (path, answer, _) in EXPORTS.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def send(self, body: Body) -> int:
        """Sends a body; gives how many of its items the receiver says it rejected. Raises SendError."""
        began, pause_s = self._clock(), FIRST_PAUSE_S
        while True:
            try:
                answer = self._exports[body.signal](body.content, timeout=self._timeout_s)
            except grpc.RpcError as error:
                self._raise_for_good(error, self._clock() - began)
            else:
                return int(getattr(answer.partial_success, EXPORTS[body.signal][2]))
            self._sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _raise_for_good(self, error: grpc.RpcError, waited_s: float) -> None:
        if error.code() in AGAIN and waited_s < self._patience_s and not self._give_up():
            return
        msg = f"{self._address}: export not taken after {waited_s:.1f} s: {error.code().name}: {error.details()}"
        raise SendError(msg) from error
