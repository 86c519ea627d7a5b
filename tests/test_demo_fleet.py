"""The fleet's stream: spans by the time they ended, whole, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from demo import scenarios
from demo.engines.exports import SPANS_PER_EXPORT, Exports
from demo.engines.wire import Emitted
from demo.fleet import Fleet

NS = 1_000_000_000
BEGAN_NS = 1_764_400_123 * NS


def stream(seconds: list[int], seed: int = 5) -> list[list[Emitted]]:
    fleet = Fleet(scenarios.load("batch-grows"), BEGAN_NS, seed)
    return [fleet.until(BEGAN_NS + second * NS) for second in seconds]


def test_spans_leave_in_the_order_they_ended_in_across_blocks_and_calls() -> None:
    ends = [span.ended_ns for part in stream([90, 100, 400, 1500]) for span in part]
    assert len(ends) > 4000
    assert all(before <= after for before, after in pairwise(ends))


def test_a_span_leaves_no_sooner_than_it_ends_and_then_at_once() -> None:
    parts = stream([100, 200])
    assert max(span.ended_ns for span in parts[0]) < BEGAN_NS + 100 * NS
    assert all(BEGAN_NS + 100 * NS <= span.ended_ns < BEGAN_NS + 200 * NS for span in parts[1])


def test_how_often_one_asks_changes_nothing() -> None:
    assert [span for part in stream([10, 20, 305, 900]) for span in part] == stream([900])[0]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, again, other = (list(Exports().bodies(stream([300], seed)[0])) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_exports_hold_every_span_once_in_at_most_512_a_piece() -> None:
    [spans] = stream([600])
    bodies = list(Exports().bodies(spans))
    found = []
    for body, count in bodies:
        resources = ExportTraceServiceRequest.FromString(body).resource_spans
        inside = [span for resource in resources for scope in resource.scope_spans for span in scope.spans]
        assert len(inside) == count <= SPANS_PER_EXPORT
        found += [(span.trace_id, span.span_id) for span in inside]
    assert len(found) == len(set(found)) == len(spans)
    assert [count for _, count in bodies[:-1]] == [SPANS_PER_EXPORT] * (len(bodies) - 1)


def test_a_request_is_counted_when_its_last_span_has_ended() -> None:
    fleet = Fleet(scenarios.load("batch-grows"), BEGAN_NS, 5)
    spans = fleet.until(BEGAN_NS + 700 * NS)
    scopes = [span.source.scope for span in spans]
    assert scopes.count("leverwatch.response_tap") <= fleet.requests <= scopes.count("leverwatch.response_tap") + 30
