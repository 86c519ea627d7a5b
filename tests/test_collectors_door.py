"""What the door refuses although it is sound: a small body that would grow far beyond its size."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from collectors_bodies import attribute, body, span
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from collectors import decode
from collectors.door import Door
from collectors.entry import UnsoundBodyError
from collectors.spool import Spool
from collectors.spool_records import Position


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(Spool(tmp_path, Position(0, 0)), lambda: 1, lambda *_: None, decode.check)


def many(spans: int, name: str = "") -> bytes:
    request = ExportTraceServiceRequest()
    scope = ScopeSpans(spans=[Span()] * spans)
    scope.scope.name = name
    request.resource_spans.add().scope_spans.append(scope)
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (many(decode.LIMIT_SPANS + 1), "spans in one export"),
        (many(3000, "x" * 100_000), "resource and scope times spans are 300"),
        (body(*(span(n) for n in range(1, 300)), **{"service.name": "x" * 1_000_000}), "resource and scope times spans"),
    ],
    ids=["spans", "scope", "resource"],
)
def test_a_body_that_grows_too_large_is_refused_and_says_why(door: Door, content: bytes, told: str) -> None:
    with pytest.raises(UnsoundBodyError, match=told):
        asyncio.run(door.admit("s", content))


def test_a_body_at_the_limit_of_spans_is_taken(door: Door) -> None:
    assert asyncio.run(door.admit("s", many(decode.LIMIT_SPANS))) == decode.LIMIT_SPANS


def test_what_a_body_grows_to_counts_each_resource_for_its_own_spans_only() -> None:
    checked = decode.check(body(span(1), span(2), **{"service.name": "name"}))
    alone = decode.check(body(span(1), **{"service.name": "name"}))
    assert checked.expanded_bytes == 2 * alone.expanded_bytes > 0
    assert decode.check(body(span(1, attributes=[attribute("k", "x" * 1000)]))).expanded_bytes < 1000
