"""Dynamo's request-trace records in, trace exports out: one span per request that ended, and the prompts left behind.

A record `request_payload` holds a prompt and its answer in clear. Only the model, the temperature and the finish reason are read from it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SCOPE, SPAN = "dynamo.request_trace", "request_end"
ENDED, PAYLOAD = "request_end", "request_payload"
FACTS = ("model", "temperature", "finish_reason")  # of a payload record that say nothing of the prompt
LIMIT_MS = 9e12


class RequestTraceError(ValueError):
    """A record is no request-trace record of schema v1; says what is missing."""


def facts_of(payload: Mapping[str, Any]) -> dict[str, str]:
    """What a payload record says beside the prompt and the answer, by name."""
    asked, answered = payload.get("request") or {}, payload.get("response") or {}
    choices = (answered.get("choices") if isinstance(answered, dict) else None) or [{}]
    first = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
    found = {
        "model": payload.get("model"),
        "temperature": asked.get("temperature") if isinstance(asked, dict) else None,
        "finish_reason": first.get("finish_reason"),
    }
    return {name: str(value) for name, value in found.items() if isinstance(value, str | int | float) and not isinstance(value, bool)}


def parsed(text: str | bytes) -> dict[str, Any]:
    """The event of one record's JSON, taken out of the envelope that Dynamo's file sink puts around it.

    Raises:
        RequestTraceError: it is no such record.
    """
    try:
        event = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        msg = f"a request-trace record that is not JSON: {error}"
        raise RequestTraceError(msg) from error
    if isinstance(event, dict) and isinstance(event.get("event"), dict):
        event = event["event"]
    if not isinstance(event, dict) or not str(event.get("schema", "")).startswith("dynamo.request.trace.v1"):
        msg = "a request-trace record of schema dynamo.request.trace.v1 is taken"
        raise RequestTraceError(msg)
    return event


def span(event: Mapping[str, Any], facts: Mapping[str, str], trace_id: bytes = b"") -> Span:
    """The span of a request that ended. Its ids are made from its content: sent again it is the same span.

    Raises:
        RequestTraceError: a time or the request id is missing or impossible.
    """
    request = event.get("request")
    if not isinstance(request, dict) or not request.get("request_id"):
        msg = "a request_end record without request.request_id"
        raise RequestTraceError(msg)
    request_id = str(request["request_id"])
    start_ms, end_ms = _times(event, request)
    made = Span(
        trace_id=trace_id if len(trace_id) == 16 and any(trace_id) else _digest(request_id.encode(), 16),
        span_id=_digest(msgspec.json.encode(event, order="sorted"), 8),
        name=SPAN,
        start_time_unix_nano=round(start_ms * 1e6),
        end_time_unix_nano=round(end_ms * 1e6),
    )
    worker = request.get("worker")
    flat = {key: value for key, value in request.items() if not isinstance(value, dict | list)}
    flat |= worker if isinstance(worker, dict) else {}
    flat |= {name: facts[name] for name in FACTS if name in facts}
    made.attributes.extend(_attributes(flat))
    return made


def request_id_of(event: Mapping[str, Any]) -> str:
    """The request that an event is about; empty where it does not say."""
    inner = event.get("request") or event.get("payload")
    return str(inner.get("request_id", "")) if isinstance(inner, dict) else ""


def add_record(record: LogRecord, event: Mapping[str, Any], facts: Mapping[str, str]) -> None:
    """Fills a log record with an event as Dynamo's own exporter writes it, but for what a payload record holds in clear."""
    is_ended = event.get("event_type") == ENDED
    said = {"event_type": str(event.get("event_type")), "rid": request_id_of(event), **(facts if is_ended else {})}
    if is_ended:
        said["payload"] = msgspec.json.encode(event).decode()
    moment = event.get("event_time_unix_ms")
    record.time_unix_nano = round(moment * 1e6) if _is_time(moment) else 0  # type: ignore[operator]
    record.attributes.extend(_attributes(said))


def export(spans: Iterable[Span], resource: Iterable[KeyValue] = ()) -> bytes:
    """A trace export of some request-trace spans."""
    request = ExportTraceServiceRequest()
    owner = request.resource_spans.add()
    owner.resource.attributes.extend(resource)
    scope = owner.scope_spans.add()
    scope.scope.name = SCOPE
    scope.spans.extend(spans)
    body: bytes = request.SerializeToString()
    return body


def _times(event: Mapping[str, Any], request: Mapping[str, Any]) -> tuple[float, float]:
    """When a request came and when it ended, in ms since 1970."""
    received, total, told = request.get("request_received_ms"), request.get("total_time_ms"), event.get("event_time_unix_ms")
    if not _is_time(received) and not _is_time(told):
        msg = "a request_end record without a sound request_received_ms or event_time_unix_ms"
        raise RequestTraceError(msg)
    start = float(received if _is_time(received) else told)  # type: ignore[arg-type]
    if isinstance(total, int | float) and math.isfinite(total) and 0 <= total < LIMIT_MS - start:
        return start, start + total
    return start, float(told) if _is_time(told) and told >= start else start  # type: ignore[arg-type, operator]


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LIMIT_MS


def _attributes(flat: Mapping[str, Any]) -> Iterator[KeyValue]:
    for key, value in flat.items():
        if isinstance(value, bool):
            yield KeyValue(key=key, value=AnyValue(bool_value=value))
        elif isinstance(value, float):
            yield KeyValue(key=key, value=AnyValue(double_value=value))
        elif value is not None and not isinstance(value, dict | list):  # a worker's id is a number of 64 bits without a sign: text
            yield KeyValue(key=key, value=AnyValue(string_value=str(value)))


def _digest(content: bytes, length: int) -> bytes:
    return hashlib.blake2b(content, digest_size=length).digest()
