"""OTLP/JSON becomes the same export as protobuf; what is misshapen is told, never raised as something else."""

from __future__ import annotations

import base64
import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import collectors_wire as wire
import pytest
from collectors_bodies import START, attribute, request, span
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.otlp_json import OtlpJsonError, to_protobuf

SPAN: dict[str, Any] = {
    "traceId": "5B8EFFF798038103D269B633813FC60C",
    "spanId": "eee19b7ec3c1b174",
    "parentSpanId": "",
    "name": "llm_request",
    "kind": 2,
    "startTimeUnixNano": str(START),
    "endTimeUnixNano": START + 5,
    "attributes": [
        {"key": "n", "value": {"intValue": "3"}},
        {
            "key": "list",
            "value": {"arrayValue": {"values": [{"doubleValue": 1.5}, {"bytesValue": "AAE="}, {"kvlistValue": {"values": []}}]}},
        },
    ],
    "events": [{"timeUnixNano": "5", "name": "e", "attributes": [{"key": "b", "value": {"boolValue": True}}]}],
    "links": [{"traceId": "00000000000000000000000000000001", "spanId": "0000000000000002"}],
    "status": {"code": 1, "message": "m"},
}
EXPORT: dict[str, Any] = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "x"}}]},
            "scopeSpans": [{"scope": {"name": "s"}, "spans": [SPAN]}],
        }
    ]
}
NUMBERS: list[Any] = [True, 0, -1, 1.5, 1e300, math.inf, math.nan, 10**30, 2**63, 2**64]
ODD: list[Any] = [*NUMBERS, None, "", "x", "\ud800", "1e5", "0x10", [], {}, [1], {"\ud800": 1}, [[]], [None]]


def parsed(text: bytes | str) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(to_protobuf(text))


def test_ids_are_hex_in_either_case_and_numbers_are_numbers_or_text() -> None:
    got = parsed(json.dumps(EXPORT)).resource_spans[0].scope_spans[0].spans[0]
    assert got.trace_id.hex() == "5b8efff798038103d269b633813fc60c"
    assert got.span_id.hex() == "eee19b7ec3c1b174"
    assert got.parent_span_id == b""
    assert got.links[0].trace_id == b"\x00" * 15 + b"\x01"
    assert (got.start_time_unix_nano, got.end_time_unix_nano) == (START, START + 5)
    assert got.attributes[0].value.int_value == 3


def test_field_names_in_snake_case_are_taken_too() -> None:
    text = json.dumps(EXPORT).replace("resourceSpans", "resource_spans").replace("scopeSpans", "scope_spans").replace("traceId", "trace_id")
    assert parsed(text) == parsed(json.dumps(EXPORT))


def test_a_field_that_nobody_knows_is_ignored() -> None:
    changed = copy.deepcopy(EXPORT)
    changed["new"] = {"a": [1]}
    changed["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["newer"] = "x"
    assert parsed(json.dumps(changed)) == parsed(json.dumps(EXPORT))


@settings(derandomize=True, deadline=None, database=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(wire.export)
def test_a_generated_export_says_the_same_in_json(body: bytes) -> None:
    said = ExportTraceServiceRequest.FromString(body)
    said.DiscardUnknownFields()
    plain = json_format.MessageToDict(said)
    for owner in owners_of_ids(plain):
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in owner:
                owner[key] = base64.b64decode(owner[key]).hex()
    assert parsed(json.dumps(plain)).SerializeToString(deterministic=True) == said.SerializeToString(deterministic=True)


def owners_of_ids(plain: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in plain.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            for one in scope.get("spans", []):
                yield one
                yield from one.get("links", [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "not JSON: "),
        (b"\xff\xfe", "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ('{"resourceSpans": ' + "1" * 5000 + "}", "not JSON: Exceeds the limit"),
        ("null", "a JSON object with resourceSpans is taken, not null"),
        ("[]", "a JSON object with resourceSpans is taken, not an array"),
        ('{"resourceSpans": 1}', "not an ExportTraceServiceRequest: "),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}', "traceId 'xyz': hex digits are taken: "),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": 5}]}]}]}', "spanId 5: hex digits are taken: "),
    ],
)
def test_what_is_no_export_is_told(text: bytes | str, told: str) -> None:
    with pytest.raises(OtlpJsonError) as caught:
        to_protobuf(text)
    assert told in str(caught.value)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(value[key], (*path, key))


def changed_at(place: tuple[Any, ...], odd: Any) -> str:
    changed = copy.deepcopy(EXPORT)
    owner: Any = changed
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = odd
    return json.dumps(changed)


def test_any_value_in_any_place_is_read_or_told() -> None:
    read = told = 0
    for place in places(EXPORT):
        for odd in ODD:
            try:
                to_protobuf(changed_at(place, odd))
                read += 1
            except OtlpJsonError:
                told += 1
    assert read > 100
    assert told > 100


def test_what_the_sdk_would_send_as_protobuf_is_read_from_json() -> None:
    said = request(span(1, attributes=[attribute("text", "é"), attribute("number", 3), attribute("real", 0.5)]), service__name="x")
    plain = json_format.MessageToDict(said)
    one = plain["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    one["traceId"], one["spanId"] = f"{1:032x}", f"{1:016x}"
    assert parsed(json.dumps(plain)) == said
