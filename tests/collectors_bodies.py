"""Small trace exports, written with the reference protobuf package."""

from __future__ import annotations

from typing import Any

from collectors_wire import length
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

START = 1_700_000_000_000_000_000
VLLM = "vllm.llm_engine"


def attribute(key: str, value: str | int | float) -> KeyValue:
    """One attribute."""
    member = {str: "string_value", int: "int_value", float: "double_value"}[type(value)]
    return KeyValue(key=key, value=AnyValue(**{member: value}))


def span(number: int, **fields: Any) -> Span:
    """A vLLM request's span; `number` makes its ids and its start, fields override."""
    start = START + number * 1_000_000
    chosen: dict[str, Any] = {
        "trace_id": number.to_bytes(16, "big"),
        "span_id": number.to_bytes(8, "big"),
        "name": "llm_request",
        "start_time_unix_nano": start,
        "end_time_unix_nano": start + 250_000_000,
        "attributes": [attribute("gen_ai.usage.prompt_tokens", 100), attribute("gen_ai.usage.completion_tokens", 10)],
    }
    return Span(**(chosen | fields))


def request(*spans: Span, scope: str = VLLM, **resource: str) -> ExportTraceServiceRequest:
    """One export of some spans."""
    made = ExportTraceServiceRequest()
    one = made.resource_spans.add()
    one.resource.attributes.extend(attribute(key.replace("__", "."), value) for key, value in resource.items())
    scoped = one.scope_spans.add()
    scoped.scope.name = scope
    scoped.spans.extend(spans)
    return made


def body(*spans: Span, scope: str = VLLM, **resource: str) -> bytes:
    """The same as bytes."""
    return bytes(request(*spans, scope=scope, **resource).SerializeToString())


def too_deep() -> bytes:
    """An export that the reference parser takes and the kernels do not."""
    value = length(1, b"x")
    for _ in range(40):
        value = length(5, length(1, value))
    return length(1, length(2, length(2, length(9, length(2, value)))))
