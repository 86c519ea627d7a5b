"""The columnar decoder says what the reference protobuf parser says, field by field."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import collectors_wire as wire
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors import decode, dialects, translate
from collectors.rows import KINDS, LATEST_NS, STATUSES, Arrival, span_rows

fixed = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


def ours(bodies: list[bytes]) -> tuple[list[Row], int]:
    """The rows of `spans` that we make of some bodies, and how many spans were refused."""
    tables = decode.scan(bodies)
    facts = dialects.deployment()
    arrivals = [Arrival("sender", 1_700_000_000_000_000_000)] * len(bodies)
    batch = span_rows(tables, translate.spoken(tables, (), facts), facts, arrivals)
    return batch.spans.to_pylist(), len(batch.refused)


def theirs(bodies: list[bytes]) -> tuple[list[Row], int]:
    """The same from the reference parser."""
    rows, refused = [], 0
    for body in bodies:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    if is_usable(span):
                        rows.append(expected(span) | {"resource": resource.resource.attributes, "scope": scope.scope.name})
                    else:
                        refused += 1
    return rows, refused


def is_usable(span: Span) -> bool:
    has_ids = hex_id(span.trace_id, 16) and hex_id(span.span_id, 8) and len(span.parent_span_id) in (0, 8)
    return bool(has_ids) and all(0 < time <= LATEST_NS for time in times(span))


def hex_id(raw: bytes, width: int) -> str | None:
    return raw.hex() if len(raw) == width and any(raw) else None


def times(span: Span) -> tuple[int, int]:
    return span.start_time_unix_nano, span.end_time_unix_nano


def expected(span: Span) -> Row:
    start, end = times(span)
    return {
        "trace_id": hex_id(span.trace_id, 16),
        "span_id": hex_id(span.span_id, 8),
        "parent_span_id": hex_id(span.parent_span_id, 8),
        "name": span.name,
        "kind": KINDS[span.kind if 0 <= span.kind < len(KINDS) else 0].as_py(),
        "started_at": EPOCH + timedelta(microseconds=start // 1000),
        "ended_at": EPOCH + timedelta(microseconds=end // 1000),
        "start_unix_nano": start,
        "duration_s": (end - start) / 1e9,
        "status": STATUSES[span.status.code if 0 <= span.status.code < len(STATUSES) else 0].as_py(),
        "status_message": span.status.message or None,
        "attributes": span.attributes,
        "events": span.events,
        "links": span.links,
    }


def assert_same_attributes(got: list[tuple[str, str | None]], want: list[KeyValue]) -> None:
    last = {pair.key: pair.value for pair in want}
    assert [key for key, _ in got] == sorted(last, key=[pair.key for pair in reversed(want)].index, reverse=True)
    for key, text in got:
        assert means(text, last[key]), (key, text, last[key])


def means(text: str | None, value: AnyValue) -> bool:
    """Whether a stored text says what an AnyValue says."""
    member = value.WhichOneof("value")
    if member is None or text is None:
        return member is None and text is None
    if member in ("array_value", "kvlist_value"):
        return same(json.loads(text), plain(value))
    if member == "double_value":
        return same(float(text), value.double_value)
    if member == "bool_value":
        return text == ("true" if value.bool_value else "false")
    return text == str(plain(value))


def plain(value: AnyValue) -> Any:
    member = value.WhichOneof("value")
    if member == "array_value":
        return [plain(item) for item in value.array_value.values]
    if member == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    if member == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    found = getattr(value, member) if member else None
    return str(found) if isinstance(found, float) and not math.isfinite(found) else found  # JSON has no word for these


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def signed(nanoseconds: int) -> int:
    return nanoseconds - 2**64 if nanoseconds >= 2**63 else nanoseconds


def assert_same(got: Row, want: Row) -> None:
    plain_columns = want.keys() - {"attributes", "resource", "events", "links"}
    assert {column: got[column] for column in plain_columns} == {column: want[column] for column in plain_columns}
    last = {pair.key: pair.value for pair in want["attributes"]}
    reals = {key for key, value in last.items() if value.WhichOneof("value") == "double_value"}
    assert_same_attributes(got["attributes"], [pair for pair in want["attributes"] if pair.key not in reals])
    numbers = [(key, repr(number)) for key, number in got["numbers"]]
    assert_same_attributes(numbers, [pair for pair in want["attributes"] if pair.key in reals])
    assert_same_attributes(got["resource"], want["resource"])
    assert [(event["name"], event["time_unix_nano"]) for event in got["events"]] == [
        (event.name, signed(event.time_unix_nano)) for event in want["events"]
    ]
    for event, said in zip(got["events"], want["events"], strict=True):
        assert_same_attributes(event["attributes"], said.attributes)
    for link, said in zip(got["links"], want["links"], strict=True):
        assert (link["trace_id"], link["span_id"]) == (hex_id(said.trace_id, 16), hex_id(said.span_id, 8))
        assert_same_attributes(link["attributes"], said.attributes)


def assert_agreement(bodies: list[bytes]) -> None:
    got, got_refused = ours(bodies)
    want, want_refused = theirs(bodies)
    assert (len(got), got_refused) == (len(want), want_refused)
    for row, said in zip(got, want, strict=True):
        assert_same(row, said)


@settings(fixed, max_examples=250)
@given(st.lists(wire.export, min_size=1, max_size=3))
def test_a_generated_export_reads_as_the_reference_parser_reads_it(bodies: list[bytes]) -> None:
    for body in bodies:
        spans = sum(len(scope.spans) for one in ExportTraceServiceRequest.FromString(body).resource_spans for scope in one.scope_spans)
        assert decode.check(body) == decode.Checked(sound=True, spans=spans)
    assert_agreement(bodies)
