"""Dynamo's spans are the recorded ones: names, parents, kinds, flags, keys, types, events, resource and scope."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from conftest import RECORDINGS
from demo_dispatches import requests, spans, types, unfolded, values
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from demo.engines import dynamo, dynamo_body, dynamo_legs
from demo.records import Request

Told = tuple[dict[str, str], str, Span]
FREE = {"trace_id", "parent_id", "request_id", "model", "input_tokens", "output_tokens", "ttft_ms", "avg_itl_ms", "instance_id"}
FREE |= {"prefill_worker_id", "decode_worker_id", "worker_id", "overlap_blocks", "busy_ns", "idle_ns", "thread.id"}
FREE |= {"elapsed_ms", "latency_ms", "request_type"}


def recorded(name: str) -> list[Told]:
    folder = RECORDINGS / name / "traces"
    if not folder.is_dir():
        pytest.skip(f"the recording {name} is not beside this checkout")
    return unfolded(ExportTraceServiceRequest.FromString(path.read_bytes()) for path in sorted(folder.glob("*.pb")))


def called(told: list[Told]) -> list[Told]:
    """The spans of requests that a caller with a trace sent, without an id of its own."""
    outer = {span.trace_id for _, _, span in told if span.name == "http-request" and span.parent_span_id}
    named = {span.trace_id for _, _, span in told if "x_request_id" in types(span.attributes)}
    return [one for one in told if one[2].trace_id in outer - named]


def fixed(attributes: Iterable[Any]) -> frozenset[Any]:
    """Keys and types, with the value of those that are always the same."""
    said = values(attributes)
    return frozenset((key, kind, None if key in FREE else said[key]) for key, kind in types(attributes).items())


def shapes(told: list[Told]) -> set[Any]:
    names = {span.span_id: span.name for _, _, span in told}
    return {
        (
            re.sub(r"-\d+$", "", resource["service.name"]),
            frozenset(key for key in resource if not key.startswith("leverwatch.")),
            scope == resource["service.name"],
            span.name,
            span.kind,
            span.flags,
            span.status.code,
            names.get(span.parent_span_id, "the caller"),
            fixed(span.attributes),
            frozenset((event.name, fixed(event.attributes)) for event in span.events),
        )
        for resource, scope, span in told
    }


@pytest.mark.parametrize(("name", "split", "spans_each"), [("dynamo-agg", False, 8), ("dynamo-disagg", True, 15)])
def test_the_spans_are_the_recorded_ones_but_for_our_own_facts(name: str, split: bool, spans_each: int) -> None:
    emitter, real = dynamo.Emitter(), shapes(called(recorded(name)))
    for request in requests("dynamo", split=split):
        told = spans(emitter.spans(request))
        assert len(told) == spans_each
        assert shapes(told) == real


def of_name(request: Request, name: str) -> list[Span]:
    return [span for _, _, span in spans(dynamo.Emitter().spans(request)) if span.name == name]


def test_the_frontends_span_says_the_requests_numbers_as_text_in_milliseconds() -> None:
    for request in requests("dynamo"):
        [span] = of_name(request, "http-request")
        said = values(span.attributes)
        assert (said["input_tokens"], said["output_tokens"]) == (str(request.prompt_tokens), str(request.output_tokens))
        assert said["ttft_ms"] == f"{request.ttft_s * 1e3:.2f}"
        assert span.start_time_unix_nano == request.started_ns
        assert span.end_time_unix_nano == request.ended_ns
        assert said["trace_id"] == request.trace_id.hex()
        assert said["decode_worker_id"] == str(dynamo_legs.worker_id(request.at.replica))


def test_spans_lie_within_those_that_called_them_and_took_no_more_than_their_time() -> None:
    for split in (False, True):
        for request in requests("dynamo", split=split):
            told = {span.span_id: span for _, _, span in spans(dynamo.Emitter().spans(request))}
            for span in told.values():
                said = values(span.attributes)
                assert said["busy_ns"] + said["idle_ns"] == span.end_time_unix_nano - span.start_time_unix_nano >= 0
                above = told.get(span.parent_span_id)
                if above is not None:
                    assert above.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= above.end_time_unix_nano


def test_both_legs_of_a_pair_overlap_as_recorded_and_are_told_apart_by_phase() -> None:
    for request in requests("dynamo", split=True):
        prefill, decode = of_name(request, "kv_router.route_request")
        assert [values(span.attributes)["phase"] for span in (prefill, decode)] == ["Prefill", "Decode"]
        assert prefill.start_time_unix_nano < decode.start_time_unix_nano < prefill.end_time_unix_nano < decode.end_time_unix_nano


@pytest.mark.parametrize(("outcome", "word"), [("aborted", "cancelled"), ("error", "error")])
def test_a_request_that_did_not_complete_says_so_and_an_aborted_one_its_tokens_so_far(outcome: Any, word: str) -> None:
    request = requests("dynamo")[0]._replace(outcome=outcome)
    [http], [call] = of_name(request, "http-request"), of_name(request, "kv_router.route_request")
    assert values(http.attributes)["request.outcome"] == values(call.attributes)["request.outcome"] == word
    tokens = values(http.attributes).get("output_tokens")
    assert tokens == (str(request.output_tokens) if outcome == "aborted" else None)
    assert ("cancellation.signal" in values(call.attributes)) == (outcome == "aborted")


def test_workers_state_their_facts_and_the_frontend_its_name_alone() -> None:
    request = requests("dynamo", split=True)[0]
    told = {resource["service.name"]: resource for resource, _, _ in spans(dynamo.Emitter().spans(request))}
    assert told["dynamo-frontend"] == {"service.name": "dynamo-frontend"}
    assert told["dynamo-decode"]["leverwatch.replica"] == request.at.replica
    assert (told["dynamo-prefill"]["leverwatch.pool"], told["dynamo-decode"]["leverwatch.pool"]) == ("prefill", "decode")


def test_attempts_are_requests_of_their_own_and_one_told_again_is_the_same() -> None:
    first = requests("dynamo")[0]
    once, retried, again = (of_name(first._replace(attempt=attempt), "http-request")[0] for attempt in (1, 2, 101))
    assert len({once.span_id, retried.span_id, again.span_id}) == 3
    ids = [values(span.attributes)["request_id"] for span in (once, retried, again)]
    assert ids[0] == ids[2] != ids[1]


def test_the_answer_counts_tokens_cached_ones_too() -> None:
    request = requests("dynamo")[-1]
    body = dynamo_body.answer(request)
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": request.cached_tokens}
    assert body["usage"]["total_tokens"] == request.prompt_tokens + request.output_tokens
    assert body["choices"][0]["finish_reason"] == request.finish_reason
    assert dynamo_body.answer(request._replace(outcome="aborted")) == {}
    assert dynamo_body.answer(request._replace(outcome="error"))["code"] == 500
