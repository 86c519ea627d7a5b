"""A backend of traces and metrics on loopback, over gRPC and HTTP, which keeps what it is sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {"trace": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}
SERVICES = {
    "trace": "opentelemetry.proto.collector.trace.v1.TraceService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
}


@dataclass
class Backend:
    """What came, as export requests. `wait` waits until something did that is looked for."""

    endpoint: str = ""
    traces: list[Any] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, kind: str, body: bytes) -> None:
        """Keeps an export."""
        with self.changed:
            self.raw.append(body)
            (self.traces if kind == "trace" else self.metrics).append(KINDS[kind].FromString(body))
            self.changed.notify_all()

    def spans(self) -> list[Any]:
        """Every span that came."""
        groups = [group for request in self.traces for group in request.resource_spans]
        return [span for group in groups for scope in group.scope_spans for span in scope.spans]

    def named(self, name: str, timeout_s: float = 30.0) -> list[Any]:
        """The spans of a name, once there is one."""
        with self.changed:
            self.changed.wait_for(lambda: any(span.name == name for span in self.spans()), timeout_s)
            return [span for span in self.spans() if span.name == name]

    def metric(self, name: str, timeout_s: float = 30.0) -> Any:
        """The newest metric of a name, once there is one."""
        with self.changed:
            self.changed.wait_for(lambda: name in self._metrics(), timeout_s)
            return self._metrics()[name]

    def resource(self) -> dict[str, str]:
        """Who sent the newest spans."""
        (group,) = self.traces[-1].resource_spans
        return {one.key: one.value.string_value for one in group.resource.attributes}

    def _metrics(self) -> dict[str, Any]:
        groups = [group for request in self.metrics for group in request.resource_metrics]
        return {metric.name: metric for group in groups for scope in group.scope_metrics for metric in scope.metrics}


def facts(span: Any) -> dict[str, Any]:
    """A span's attributes."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@contextmanager
def over_grpc(backend: Backend | None = None) -> Iterator[Backend]:
    """A backend that takes OTLP over gRPC."""
    backend = backend or Backend()
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)

        def taking(kind: str) -> Any:
            def take(body: bytes, _: Any) -> bytes:
                backend.take(kind, body)
                return b""

            return grpc.unary_unary_rpc_method_handler(take)

        for kind, service in SERVICES.items():
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": taking(kind)}),))
        backend.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield backend
        finally:
            server.stop(0).wait()


@contextmanager
def over_http() -> Iterator[Backend]:
    """A backend that takes OTLP over HTTP."""
    backend = Backend()

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            backend.take("trace" if self.path == "/v1/traces" else "metrics", body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    backend.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield backend
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
