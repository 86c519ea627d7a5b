"""The spans and events that Dynamo 1.6 sends, prepared: where in its code each comes from, which keys each has, and of which type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from demo.engines import wire

EVENT_FIELD = 11
SOURCES = "/opt/dynamo/lib/"


class Place(NamedTuple):
    """A line of Dynamo's source."""

    path: str
    module: str
    line: int

    def attributes(self) -> list[tuple[str, str | int]]:
        """As it stands on spans and events."""
        return [("code.file.path", SOURCES + self.path), ("code.module.name", self.module), ("code.line.number", self.line)]


LOGGING = Place("runtime/src/logging.rs", "dynamo_runtime::logging", 636)
ROUTING = Place("llm/src/kv_router/routing_host/kv.rs", "dynamo_llm::kv_router::routing_host::kv", 53)
INPUT = Place("kv-router/src/services/selection/input.rs", "dynamo_kv_router::services::selection::input", 203)
RUN = Place("kv-router/src/services/selection/core/run.rs", "dynamo_kv_router::services::selection::core::run", 747)
METRICS = Place("llm/src/http/service/metrics.rs", "dynamo_llm::http::service::metrics", 1711)
SERVICE = Place("llm/src/http/service/service_v2.rs", "dynamo_llm::http::service::service_v2", 1434)
ROUTE = Place("runtime/src/pipeline/network/egress/route_span.rs", "dynamo_runtime::pipeline::network::egress::route_span", 275)
INGRESS = "dynamo_runtime::pipeline::network::ingress::push_handler"
HANDLER = Place("runtime/src/pipeline/network/ingress/push_handler.rs", INGRESS, 832)

OF_REQUEST = "request_span"
HTTP, SELECT, CALL, HANDLE = "http-request", "kv_router.select_worker", "kv_router.route_request", "handle_payload"
CHOOSING = {
    "kv_router.compute_block_hashes": INPUT,
    "kv_router.compute_seq_hashes": INPUT._replace(line=206),
    "kv_router.find_matches": RUN,
    "kv_router.schedule": RUN._replace(line=454),
}
"""The steps of a selection, in order."""

_TRACE: dict[str, wire.Kind] = {"trace_id": "string", "parent_id": "string"}
_TIMING: dict[str, wire.Kind] = {"busy_ns": "int", "idle_ns": "int"}
_TEXTS_OF_HTTP = (
    "request_id", "model", "input_tokens", "output_tokens", "ttft_ms", "avg_itl_ms", "prefill_worker_id", "decode_worker_id",
    "request.outcome", "error.type",
)  # fmt: skip
_TEXTS_OF_CALL = ("request_id", "overlap_blocks", "phase", "worker_id")
_FIXED_OF_HTTP = {"method": "POST", "uri": "/v1/chat/completions", "version": "HTTP/1.1", "trace_flags": "01"}
_COUNTS = {"image_count": "0", "video_count": "0", "audio_count": "0"}
ATTEMPT = "0"
"""Of Dynamo's own attempts at a request: it counts from 0, and none here is moved to another worker."""


def _texts(*keys: str) -> dict[str, wire.Kind]:
    return dict.fromkeys(keys, "string")


def _form(kind: Span.SpanKind.ValueType, place: Place, target: str, attributes: Mapping[str, wire.Kind], **fixed: str) -> wire.SpanForm:
    stands = [*place.attributes(), ("thread.id", 5), ("thread.name", "tokio-rt-worker"), ("target", target), *fixed.items()]
    return wire.SpanForm(kind, {**attributes, **_TIMING}, fixed=stands)


def forms() -> dict[str, wire.SpanForm]:
    """Each span by name. All end with the time in which it was worked on, and the rest of its duration."""
    route: dict[str, wire.Kind] = {
        **_texts(*_TEXTS_OF_CALL),
        "migration.is_retry": "bool",
        **_texts("migration.tokens_completed", "request.outcome", "cancellation.signal", "error.type"),
    }
    worker = {**_TRACE, **_texts("request_id", "component", "instance_id")}
    made = {
        HTTP: _form(wire.INTERNAL, LOGGING, OF_REQUEST, {**_TRACE, **_texts(*_TEXTS_OF_HTTP)}, **_FIXED_OF_HTTP, **_COUNTS),
        SELECT: _form(wire.INTERNAL, ROUTING, ROUTING.module, {}),
        CALL: _form(wire.CLIENT, ROUTING._replace(line=560), OF_REQUEST, route, **{"dp_rank": "0", "request.attempt": ATTEMPT}),
        HANDLE: _form(
            wire.SERVER, LOGGING._replace(line=778), OF_REQUEST, worker, trace_flags="01", endpoint="generate", namespace="dynamo"
        ),
    }
    return made | {name: _form(wire.INTERNAL, place, place.module, {}) for name, place in CHOOSING.items()}


class EventForm:
    """An event of spans whose attribute keys are prepared, and whose values are text."""

    def __init__(self, name: str, place: Place, keys: Sequence[str], *, target: str = "", **fixed: str) -> None:
        stands: list[tuple[str, str | int]] = [("level", "INFO"), ("target", target or place.module), *fixed.items(), *place.attributes()]
        self._event = Span.Event(name=name)
        for key, value in stands:
            said = AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)
            self._event.attributes.append(KeyValue(key=key, value=said))
        self._event.attributes.extend(KeyValue(key=key) for key in keys)
        self._places = [one.value for one in self._event.attributes[len(stands) :]]

    def encoded(self, at_ns: int, *values: str) -> bytes:
        """The event as a field of its span, to be put behind the span's others."""
        for place, value in zip(self._places, values, strict=True):
            place.string_value = value
        self._event.time_unix_nano = at_ns
        content = self._event.SerializeToString()
        return _length_delimited(content)


def _length_delimited(content: bytes) -> bytes:
    head, length = bytearray([EVENT_FIELD << 3 | 2]), len(content)
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + content


def events() -> dict[str, EventForm]:
    """Each event by what it tells."""
    of_http = {"endpoint": "chat_completions", "request_type": "stream"}
    completed = METRICS._replace(line=1834)
    return {
        "received": EventForm("request received", METRICS, ("request_id", "model"), **of_http),
        "answered": EventForm("http response sent", SERVICE, ("status", "latency_ms")),
        "completed": EventForm("request completed", completed, ("request_id", "model", "status", "elapsed_ms"), **of_http),
        "routed": EventForm("route request completed", ROUTE, ("request.outcome",), target=OF_REQUEST),
        "taken": EventForm("request received", HANDLER, ("request_id",)),
        "done": EventForm("request completed", HANDLER._replace(line=141), ("request_id",)),
    }
