"""OTLP/JSON in, the same export as protobuf bytes out. Ids are hex there and bytes here."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ID_KEYS = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")

# What a misshapen export raises in a walk over it or in the protobuf package: it lets an infinite number or a key that is half
# a surrogate pair through as OverflowError and SystemError.
UNUSABLE = (json_format.ParseError, AttributeError, TypeError, RecursionError, OverflowError, SystemError)


class OtlpJsonError(ValueError):
    """The text is no OTLP/JSON trace export; says where."""


def to_protobuf(text: bytes | str) -> bytes:
    """An ExportTraceServiceRequest in OTLP/JSON as protobuf bytes. Unknown fields are ignored, as OTLP asks.

    Raises:
        OtlpJsonError: says what came and what is taken.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise OtlpJsonError(msg) from error
    if not isinstance(plain, dict):
        msg = f"a JSON object with resourceSpans is taken, not {type(plain).__name__}"
        raise OtlpJsonError(msg)
    return plain_to_protobuf(plain)


def plain_to_protobuf(plain: dict[str, Any]) -> bytes:
    """The same from a parsed object.

    Raises:
        OtlpJsonError: as `to_protobuf`.
    """
    try:
        for resource in _items(plain, "resourceSpans", "resource_spans"):
            for scope in _items(resource, "scopeSpans", "scope_spans"):
                for span in _items(scope, "spans", "spans"):
                    _convert_ids(span)
                    for link in _items(span, "links", "links"):
                        _convert_ids(link)
        request = json_format.ParseDict(plain, ExportTraceServiceRequest(), ignore_unknown_fields=True)
    except UNUSABLE as error:
        msg = f"not an ExportTraceServiceRequest: {error}"
        raise OtlpJsonError(msg) from error
    body: bytes = request.SerializeToString()
    return body


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
