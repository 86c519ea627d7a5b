"""What a fleet's processes send: requests by their engines' emitters, replicas' pages at each look; and what disorder makes of it."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from demo import disorder, scenarios
from demo.fleet import Fleet
from demo.records import Request
from demo.replicas.serving import Serving, Split
from demo.scenarios.layout import Bug, Disorder, Scenario
from demo.telemetry import Body, Telemetry

BEGAN_NS = 1_764_400_000 * 1_000_000_000
MINUTE_NS = 60_000_000_000


def scenario(extra: str = "", engine: str = "vllm") -> Scenario:
    return scenarios.parse(
        f"""
name = "x"
what = "x"
hours = 1
{extra}
[[pools]]
name = "p"
model = "m"
engine = "{engine}"
network = "dense-8b"
hardware = "h100"
groups = 2
lever = "speculation"
setting = "eagle-3"
[pools.serving]
speculation = {{ draft_tokens = 3, acceptance = [0.6] }}
[[traffic]]
name = "t"
pool = "p"
requests_per_s = 2
input_tokens = [100, 2000]
output_median_tokens = 60
""",
        "here.toml",
    )


def points(bodies: list[Body]) -> list[Metric]:
    """The metrics of bodies, replica after replica."""
    requests = [ExportMetricsServiceRequest.FromString(body.content) for body in bodies]
    scopes = [scope for request in requests for resource in request.resource_metrics for scope in resource.scope_metrics]
    return [metric for scope in scopes for metric in scope.metrics]


def sent(played: Scenario, minutes: int = 5) -> tuple[list[Body], list[Request]]:
    fleet, telemetry = Fleet(played, BEGAN_NS, 3), Telemetry(played.disorder, BEGAN_NS)
    events = fleet.until(BEGAN_NS + minutes * MINUTE_NS)
    return list(telemetry.bodies(events)), [event for event in events if isinstance(event, Request)]


def spans(bodies: list[Body]) -> list[Span]:
    requests = [ExportTraceServiceRequest.FromString(body.content) for body in bodies if body.signal == "traces"]
    return [span for request in requests for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def test_every_request_is_told_by_its_engine_and_by_the_tap_in_front_of_it() -> None:
    bodies, requests = sent(scenario())
    found = Counter(span.name for span in spans(bodies))
    assert found == {"llm_request": len(requests), "response_body": len(requests)}
    assert sum(body.items for body in bodies if body.signal == "traces") == sum(found.values())


def test_each_look_at_the_replicas_is_sent_with_all_of_them_and_its_own_moment() -> None:
    bodies, _ = sent(scenario())
    [body] = [body for body in bodies if body.signal == "metrics"]
    resources = ExportMetricsServiceRequest.FromString(body.content).resource_metrics
    replicas = [{a.key: a.value.string_value for a in r.resource.attributes}["service.instance.id"] for r in resources]
    assert replicas == ["p-0", "p-1"] * 5
    points = [[p for m in r.scope_metrics[0].metrics for p in (*m.gauge.data_points, *m.sum.data_points)] for r in resources]
    assert sum(map(len, points)) == body.items
    moments = [{p.time_unix_nano for p in of_page} for of_page in points]
    assert moments == [{BEGAN_NS + number // 2 * MINUTE_NS} for number in range(10)]


def test_many_looks_are_several_exports() -> None:
    bodies, _ = sent(scenario(), minutes=120)
    items = [body.items for body in bodies if body.signal == "metrics"]
    assert len(items) > 1
    assert all(count >= 2000 for count in items[:-1])


def test_pages_that_somebody_else_looks_at_are_made_and_not_sent() -> None:
    played = scenario()
    fleet, telemetry = Fleet(played, BEGAN_NS, 3), Telemetry(played.disorder, BEGAN_NS)
    bodies = list(telemetry.bodies(fleet.until(BEGAN_NS + MINUTE_NS), scraped=False))
    assert {body.signal for body in bodies} == {"traces"}
    assert sorted(telemetry.texts) == ["p-0", "p-1"]


def test_a_duplicate_leg_is_another_span_of_the_same_trace() -> None:
    tidy, requests = sent(scenario())
    untidy, _ = sent(scenario("disorder = { duplicate_share = 0.25 }"))
    doubled = [
        trace for trace, count in Counter(span.trace_id for span in spans(untidy) if span.name == "llm_request").items() if count == 2
    ]
    assert len(doubled) == pytest.approx(0.25 * len(requests), rel=0.35)
    assert len({span.span_id for span in spans(untidy)}) == len(spans(untidy)) > len(spans(tidy))


def test_a_page_shows_what_had_happened_when_it_was_looked_at_however_late_it_is_sent() -> None:
    apart = Serving(split=Split(prefill=1, decode=1, link_bytes_per_s=25e9))
    [pool] = scenario().pools
    played = msgspec.structs.replace(scenario(), pools=(msgspec.structs.replace(pool, serving=apart),))
    events = Fleet(played, BEGAN_NS, 3).until(BEGAN_NS + 5 * MINUTE_NS)
    together, each = Telemetry(Disorder(), BEGAN_NS), Telemetry(Disorder(), BEGAN_NS)
    at_once = [body for body in together.bodies(events) if body.signal == "metrics"]
    one_by_one = [body for event in events for body in each.bodies([event]) if body.signal == "metrics"]
    assert points(at_once) == points(one_by_one)


def test_a_replica_whose_clock_is_ahead_says_later_times() -> None:
    _, requests = sent(scenario())
    first = next(request for request in requests if request.at.replica == "p-1")
    [told] = disorder.told(first, Disorder(clock_ahead_s={"p-1": 2.5}))
    assert told.started_ns - first.started_ns == 2_500_000_000
    assert disorder.by_a_right_clock(told, Disorder(clock_ahead_s={"p-1": 2.5})) == first
    other = next(request for request in requests if request.at.replica == "p-0")
    assert list(disorder.told(other, Disorder(clock_ahead_s={"p-1": 2.5}))) == [other]


@pytest.mark.parametrize(
    ("bug", "shown"),
    [
        ("accepted_includes_bonus", lambda said, was: said.accepted_tokens == was.accepted_tokens + was.verify_steps),
        ("missing_is_minus_one", lambda said, _: said.ttft_s == -1),
        ("clock_steps_back", lambda said, was: said.ttft_s == was.ttft_s - 3),
        ("cached_is_prompt_less_one", lambda said, was: said.cached_tokens == was.prompt_tokens - 1),
        ("recomputed_counts_as_cached", lambda said, was: said.cached_tokens == was.prompt_tokens + was.output_tokens // 2),
    ],
)
def test_an_engine_bug_changes_what_is_told_of_those_it_meets_and_of_no_other(bug: Bug, shown: object) -> None:
    _, requests = sent(scenario())
    met = [request._replace(preemptions=1, prefill_at=request.at) for request in requests]
    told = [next(disorder.told(request, Disorder(bugs=(bug,)))) for request in met]
    assert callable(shown)
    hit = [shown(said, was) for said, was in zip(told, met, strict=True)]
    assert any(hit)
    assert all(said == was or there for said, was, there in zip(told, met, hit, strict=True))
    plain = [next(disorder.told(request, Disorder(bugs=(bug,)))) for request in requests]
    if bug in ("cached_is_prompt_less_one", "recomputed_counts_as_cached"):
        assert plain == requests


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "dynamo"])
def test_no_bug_makes_a_span_that_ends_before_it_starts(engine: str) -> None:
    bugs: tuple[Bug, ...] = ("missing_is_minus_one", "clock_steps_back")
    bodies, _ = sent(msgspec.structs.replace(scenario(engine=engine), disorder=Disorder(bugs=bugs)))
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans(bodies))
