"""The emitters send what the engines sent when they were recorded: scopes, names, parents, links, keys, types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from demo import records, scenarios, traffic
from demo.engines import response_tap, sglang, vllm
from demo.engines.exports import Exports
from demo.engines.wire import Emitter
from demo.records import Request

RECORDINGS = Path(__file__).resolve().parents[1] / "../shared/data/otlp"
OURS = "leverwatch."
NOT_AT_TRACE_LEVEL_2 = {"chunked_prefill", "fake_output", "decode_loop"}


class Seen(NamedTuple):
    """A span with where it came from."""

    resource: tuple[tuple[str, str], ...]
    scope: str
    span: Span


def unfolded(requests: Iterable[ExportTraceServiceRequest]) -> list[Seen]:
    return [
        Seen(types(resource_spans.resource.attributes), scope_spans.scope.name, span)
        for request in requests
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


def types(attributes: Iterable[object], theirs_only: bool = True) -> tuple[tuple[str, str], ...]:
    """Keys and OTLP types in order; without our own keys where asked."""
    pairs = ((a.key, a.value.WhichOneof("value")) for a in attributes)  # type: ignore[attr-defined]
    return tuple((key, kind) for key, kind in pairs if not (theirs_only and key.startswith(OURS)))


def values(span: Span) -> dict[str, object]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value") or "") for a in span.attributes}


def recorded(name: str) -> list[Seen]:
    folder = RECORDINGS / name / "traces"
    if not folder.is_dir():
        pytest.skip(f"the recording {name} is not beside this checkout")
    return unfolded(ExportTraceServiceRequest.FromString(path.read_bytes()) for path in sorted(folder.glob("*.pb")))


def served(model: str) -> Iterator[Request]:
    frame = traffic.requests(scenarios.load("batch-grows"), 0, block=5, seed=1)
    return records.rows(frame.filter(model=model))


def emitted(requests: Iterable[Request], *emitters: Emitter) -> list[Seen]:
    spans = [span for request in requests for emitter in emitters for span in emitter.spans(request)]
    return unfolded(ExportTraceServiceRequest.FromString(body) for body, _ in Exports().bodies(spans))


def shape(seen: Seen) -> tuple[object, ...]:
    span = seen.span
    return seen.resource, seen.scope, span.name, span.kind, span.HasField("status"), span.status.code, types(span.attributes)


def test_the_vllm_span_is_the_recorded_one_but_for_our_own_facts() -> None:
    real = {shape(seen) for seen in recorded("vllm") if seen.span.name == "llm_request"}
    ours = {shape(seen) for model in ("chat-70b", "code-13b") for seen in emitted(served(model), vllm.Emitter())}
    assert ours == real
    assert len(ours) == 2  # with a temperature, and without


def test_the_vllm_span_has_a_remote_parent_as_recorded() -> None:
    real = {seen.span.flags for seen in recorded("vllm") if seen.span.name == "llm_request" and seen.span.parent_span_id}
    assert {seen.span.flags for seen in emitted(served("chat-70b"), vllm.Emitter())} == real


def test_a_temperature_of_zero_is_not_said() -> None:
    assert all("gen_ai.request.temperature" not in values(seen.span) for seen in emitted(served("code-13b"), vllm.Emitter()))
    assert all(values(seen.span)["gen_ai.request.temperature"] == 0.7 for seen in emitted(served("chat-70b"), vllm.Emitter()))


def test_a_vllm_replica_states_its_facts_on_the_resource_and_its_arm_on_the_span() -> None:
    request = next(served("chat-70b"))
    [span] = vllm.Emitter().spans(request)
    facts = {key: value for key, value in span.source.resource if key.startswith((OURS, "service."))}
    assert facts == {
        "service.instance.id": request.replica,
        "service.name": "vllm",
        "leverwatch.model": "chat-70b",
        "leverwatch.hardware": "h100",
        "leverwatch.topology": "tp4",
        "leverwatch.gpus": "4",
        "leverwatch.lever.speculation": "ngram-4",
    }
    assert values(Span.FromString(span.span))["leverwatch.arm.speculation"] == request.speculation_arm


def test_the_vllm_span_carries_the_request_s_numbers() -> None:
    request = next(served("chat-70b"))
    [seen] = emitted([request], vllm.Emitter())
    said = values(seen.span)
    assert said["gen_ai.latency.time_in_model_decode"] == request.decode_s
    assert said["gen_ai.latency.time_in_queue"] == request.queue_s
    assert (said["gen_ai.usage.prompt_tokens"], said["gen_ai.usage.completion_tokens"]) == (request.prompt_tokens, request.output_tokens)
    assert seen.span.start_time_unix_nano == request.started_ns
    assert seen.span.end_time_unix_nano == vllm.end_ns(request) > request.started_ns + int(request.e2e_s * 1e9)


def test_the_tap_s_span_is_the_root_and_the_engine_s_its_child() -> None:
    seen = emitted(served("chat-70b"), response_tap.Emitter(), vllm.Emitter())
    taps = {s.span.span_id: s for s in seen if s.scope == "leverwatch.response_tap"}
    engines = [s for s in seen if s.scope == "vllm.tracing.otel"]
    assert len(taps) == len(engines) > 50
    for engine in engines:
        tap = taps[engine.span.parent_span_id]
        assert (tap.span.name, tap.span.kind, tap.span.parent_span_id) == ("response_body", Span.SPAN_KIND_SERVER, b"")
        assert tap.span.trace_id == engine.span.trace_id
        assert values(tap.span)["leverwatch.body.request_id"] == values(engine.span)["gen_ai.request.id"]
        assert tap.span.start_time_unix_nano <= engine.span.start_time_unix_nano < engine.span.end_time_unix_nano
        assert engine.span.end_time_unix_nano <= tap.span.end_time_unix_nano
        assert ("service.name", "string_value") in tap.resource


def test_the_tap_tells_of_speculation_in_the_treated_arm_alone() -> None:
    always = {"request_id": "string", "prompt_tokens": "int", "cached_tokens": "int", "output_tokens": "int", "finish_reason": "string"}
    speculated = dict.fromkeys(("draft_tokens", "accepted_tokens", "verify_steps"), "int")
    emitter = response_tap.Emitter()
    for request in served("chat-70b"):
        [span] = emitter.spans(request)
        expected = always | (speculated if request.speculation_arm == "treated" else {})
        said = dict(types(Span.FromString(span.span).attributes, theirs_only=False))
        assert said == {f"leverwatch.body.{name}": f"{kind}_value" for name, kind in expected.items()}


def generic(name: str) -> str:
    """A span's name without its request, host and process."""
    return re.sub(r"(?<=Req )\w+|(?<=host:)\w+|(?<=pid:)\d+", "*", name)


def sglang_shapes(seen: list[Seen]) -> set[tuple[object, ...]]:
    """All that is fixed about the spans of the traces that a prefill and a decode leg share: name, place, links, keys and types."""
    shared = {s.span.trace_id for s in seen if s.span.name.startswith("prefill Req ")}
    names = {s.span.span_id: generic(s.span.name) for s in seen}
    shapes: set[tuple[object, ...]] = set()
    for span_seen in (s for s in seen if s.span.trace_id in shared and s.span.name not in NOT_AT_TRACE_LEVEL_2):
        span = span_seen.span
        parent = names.get(span.parent_span_id, "remote" if span.parent_span_id else "none")
        links = tuple((names[link.span_id], link.flags, link.trace_id == span.trace_id) for link in span.links)
        own = (generic(span.name), span.kind, span.HasField("status"), span.flags, parent, links, types(span.attributes))
        shapes.add((span_seen.resource, span_seen.scope, *own))
    return shapes


def test_the_sglang_spans_are_the_recorded_ones_of_both_legs() -> None:
    real = sglang_shapes(recorded("sglang-isolated"))
    assert sglang_shapes(emitted(served("docs-8b"), sglang.Emitter())) == real
    assert len(real) == 18  # per leg: the root, two threads, five stages; and two stages that both legs have


def test_the_two_legs_share_trace_room_and_caller_and_the_tokens_are_the_decode_leg_s() -> None:
    [request, *_] = served("docs-8b")
    seen = emitted([request], sglang.Emitter())
    prefill, decode = (s for s in seen if " Req " in s.span.name)
    first, second = values(prefill.span), values(decode.span)
    assert prefill.span.name == f"prefill Req {str(first['rid'])[:8]}"
    assert decode.span.name == f"decode Req {str(second['rid'])[:8]}"
    assert first["bootstrap_room"] == second["bootstrap_room"]
    assert first["rid"] != second["rid"]
    assert prefill.span.trace_id == decode.span.trace_id
    assert prefill.span.parent_span_id == decode.span.parent_span_id == request.parent_span_id
    assert (first["gen_ai.usage.completion_tokens"], second["gen_ai.usage.completion_tokens"]) == (1, request.output_tokens)
    assert first["gen_ai.usage.cached_tokens"] == second["gen_ai.usage.cached_tokens"] == request.cached_tokens


def test_the_decode_leg_goes_on_when_the_cache_has_come() -> None:
    [request, *_] = served("docs-8b")
    by_name = {s.span.name: s.span for s in emitted([request], sglang.Emitter())}
    moved_ns = by_name["prefill_transfer_kv_cache"].end_time_unix_nano - by_name["prefill_transfer_kv_cache"].start_time_unix_nano
    assert moved_ns == int((request.kv_transfer_s or 0) * 1e9)
    assert abs(by_name["decode_transferred"].end_time_unix_nano - by_name["prefill_transfer_kv_cache"].end_time_unix_nano) < 10
    assert by_name["decode_forward"].start_time_unix_nano > by_name["prefill_transfer_kv_cache"].end_time_unix_nano
    root = next(span for name, span in by_name.items() if name.startswith("decode Req"))
    assert values(root)["gen_ai.latency.time_in_model_decode"] == pytest.approx(request.decode_s, abs=0.001)


def test_the_workers_of_a_pair_say_their_pool() -> None:
    [request, *_] = served("docs-8b")
    sources = {span.source for span in sglang.Emitter().spans(request)}
    assert {(dict(s.resource)["service.instance.id"], dict(s.resource)["leverwatch.pool"]) for s in sources} == {
        ("docs-8b-prefill-0", "prefill"),
        ("docs-8b-decode-0", "decode"),
    }
