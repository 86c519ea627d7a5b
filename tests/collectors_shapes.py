"""Hand-made request shapes as the exports that an engine, a gateway, a tap or a log would have sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from collectors import request_trace, response_bodies

SHAPES = Path(__file__).parents[1] / "../shared/data/span_shapes.json"
T0_NS = 1_790_000_000_000_000_000
KINDS = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3}
STATUSES = {"UNSET": 0, "OK": 1, "ERROR": 2}
MEMBERS = {"string": "string_value", "int": "int_value", "double": "double_value", "bool": "bool_value"}
Shape = dict[str, Any]


def shapes() -> list[Shape]:
    """Every shape of the file; none where it is not beside the checkout."""
    found: list[Shape] = json.loads(SHAPES.read_text())["shapes"] if SHAPES.is_file() else []
    return found


def exports(shape: Shape) -> Iterator[bytes]:
    """One trace export for each resource of a shape, and one for each body or record that came beside the spans."""
    for resource in shape["resources"]:
        export = ExportTraceServiceRequest()
        owner = export.resource_spans.add()
        owner.resource.attributes.extend(_attributes(shape["resources"][resource]))
        for scope, named in shape["scopes"].items():
            spans = [span for span in shape["spans"] if (span["resource"], span["scope"]) == (resource, scope)]
            if spans:
                into = owner.scope_spans.add()
                into.scope.name, into.scope.version = named["name"], named["version"] or ""
                for span in spans:
                    _add(into.spans, span, shape["id"])
        yield export.SerializeToString()
    yield from _bodies(shape)
    yield from _records(shape)


def trace_id(shape_id: str, label: str) -> bytes:
    """The id of a trace of a shape."""
    return _digest(f"{shape_id} {label}", 16)


def _add(spans: Any, said: Shape, shape_id: str) -> None:
    span = spans.add(trace_id=trace_id(shape_id, said["trace"]), span_id=_digest(f"{shape_id} {said['id']}", 8), name=said["name"])
    if said["parent"] is not None:
        span.parent_span_id = _digest(f"{shape_id} {said['parent']}", 8)
    span.kind, span.status.code = KINDS[said["kind"]], STATUSES[said["status"]]
    span.start_time_unix_nano, span.end_time_unix_nano = T0_NS + said["start_ns"], T0_NS + said["end_ns"]
    span.attributes.extend(_attributes(said["attributes"]))
    for happened in said.get("events") or []:
        event = span.events.add(name=happened["name"], time_unix_nano=T0_NS + happened["time_ns"])
        event.attributes.extend(_attributes(happened["attributes"]))


def _attributes(said: dict[str, Any]) -> Iterator[KeyValue]:
    for key, typed in said.items():
        if typed["t"] == "string[]":
            texts = [AnyValue(string_value=text) for text in typed["v"]]
            yield KeyValue(key=key, value=AnyValue(array_value=ArrayValue(values=texts)))
        else:
            yield KeyValue(key=key, value=AnyValue(**{MEMBERS[typed["t"]]: typed["v"]}))


def _bodies(shape: Shape) -> Iterator[bytes]:
    """A recorded answer: joined by the request's id alone, as it has no trace."""
    received = {"received_at": datetime.fromtimestamp(T0_NS / 1e9, UTC).isoformat()}
    if "meta_info" in shape:
        rid = next(span["attributes"]["rid"]["v"] for span in shape["spans"] if "rid" in span["attributes"])
        body = {"text": "", "meta_info": shape["meta_info"] | {"id": rid}}
        yield from _taken(received | {"body": body})
    if "response_body" in shape:
        asked = [span["attributes"].get("gen_ai.request.id", {}).get("v") for span in shape["spans"]]
        request_id = next(name for name in reversed(asked) if name)
        yield from _taken(received | {"request_id": request_id, "body": {"object": "chat.completion", **shape["response_body"]}})


def _taken(line: dict[str, Any]) -> Iterator[bytes]:
    for export in response_bodies.exports([json.dumps(line)], datetime.fromtimestamp(T0_NS / 1e9, UTC)):
        assert isinstance(export, bytes), export
        yield export


def _records(shape: Shape) -> Iterator[bytes]:
    """A request-trace record in the form that was recorded: the shape's payload lies under `request` there."""
    for record in shape.get("logs", []):
        payload = json.loads(record["attributes"]["payload"]["v"])
        yield request_trace.export([request_trace.span({"event_time_unix_ms": T0_NS // 1_000_000, "request": payload}, {})])


def _digest(text: str, length: int) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=length).digest()
