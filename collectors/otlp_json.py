"""OTLP/JSON of traces, metrics or logs in, the same export as protobuf bytes out. Ids are hex there and bytes here."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.json_words import json_word

ID_KEYS = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")

# What a misshapen export raises in a walk over it or in the protobuf package: it lets an infinite number or a key that is half
# a surrogate pair through as OverflowError and SystemError.
UNUSABLE = (json_format.ParseError, AttributeError, TypeError, RecursionError, OverflowError, SystemError)


class OtlpJsonError(ValueError):
    """The text is no OTLP/JSON export of its signal; says where."""


REQUESTS: dict[str, type[Message]] = {
    "traces": ExportTraceServiceRequest,
    "metrics": ExportMetricsServiceRequest,
    "logs": ExportLogsServiceRequest,
}
ROOTS = {"traces": "resourceSpans", "metrics": "resourceMetrics", "logs": "resourceLogs"}


def to_protobuf(text: bytes | str, signal: str = "traces") -> bytes:
    """An export in OTLP/JSON as protobuf bytes. Unknown fields are ignored, as OTLP asks.

    Raises:
        OtlpJsonError: says what came and what is taken.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise OtlpJsonError(msg) from error
    if not isinstance(plain, dict):
        msg = f"a JSON object with {ROOTS[signal]} is taken, not {json_word(plain)}"
        raise OtlpJsonError(msg)
    return plain_to_protobuf(plain, signal)


def plain_to_protobuf(plain: dict[str, Any], signal: str = "traces") -> bytes:
    """The same from a parsed object.

    Raises:
        OtlpJsonError: as `to_protobuf`.
    """
    try:
        for owner in _with_ids(plain, signal):
            _convert_ids(owner)
        request = json_format.ParseDict(plain, REQUESTS[signal](), ignore_unknown_fields=True)
    except UNUSABLE as error:
        msg = f"not an {REQUESTS[signal].__name__}: {error}"
        raise OtlpJsonError(msg) from error
    body: bytes = request.SerializeToString()
    return body


def _with_ids(plain: dict[str, Any], signal: str) -> Iterator[dict[str, Any]]:
    """Everything in an export that carries ids: spans and their links, log records, exemplars."""
    if signal == "traces":
        for span in _inner(plain, ("resourceSpans", "scopeSpans", "spans")):
            yield span
            yield from _items(span, "links", "links")
    elif signal == "logs":
        yield from _inner(plain, ("resourceLogs", "scopeLogs", "logRecords"))
    else:
        for metric in _inner(plain, ("resourceMetrics", "scopeMetrics", "metrics")):
            for form in ("gauge", "sum", "histogram", "exponentialHistogram", "exponential_histogram"):
                for point in _items(metric.get(form) or {}, "dataPoints", "data_points"):
                    yield from _items(point, "exemplars", "exemplars")


def _inner(owner: dict[str, Any], path: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """What lies at the end of a path of lists."""
    if not path:
        yield owner
        return
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in path[0])
    for item in _items(owner, path[0], snake):
        yield from _inner(item, path[1:])


def _items(owner: dict[str, Any], camel: str, snake: str) -> list[dict[str, Any]]:
    return owner.get(camel) or owner.get(snake) or []


def _convert_ids(owner: dict[str, Any]) -> None:
    for key in ID_KEYS:
        text = owner.get(key)
        if not text:
            continue
        try:
            owner[key] = base64.b64encode(binascii.unhexlify(text)).decode()
        except (binascii.Error, ValueError, TypeError) as error:
            msg = f"{key} {text!r}: hex digits are taken: {error}"
            raise OtlpJsonError(msg) from error
