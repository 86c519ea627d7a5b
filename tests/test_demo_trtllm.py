"""TensorRT-LLM's spans, answers and page are those of its sources: names, parents, kinds, keys, types and units."""

from __future__ import annotations

import json
from typing import Any

import pytest
from collectors_shapes import KINDS, SHAPES, STATUSES, shapes
from demo_dispatches import events, looks, requests, spans, types, values
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from prometheus_client.parser import text_string_to_metric_families

from demo.engines import trtllm, trtllm_body, trtllm_page
from demo.records import Request


def shape(name: str) -> dict[str, Any]:
    if not SHAPES.is_file():
        pytest.skip(f"no shapes beside the checkout: {SHAPES}")
    return next(one for one in shapes() if one["id"] == name)


def members(said: dict[str, Any]) -> dict[str, str]:
    return {key: f"{typed['t']}_value" for key, typed in said.items()}


def expected(name: str) -> set[Any]:
    """Of each span of a shape: service, scope, name, kind, status, parent, keys and types, events."""
    known = shape(name)
    names = {span["id"]: span["name"] for span in known["spans"]}
    return {
        (
            known["resources"][span["resource"]]["service.name"]["v"],
            known["scopes"][span["scope"]]["name"],
            span["name"],
            KINDS[span["kind"]],
            STATUSES[span["status"]],
            names.get(span["parent"], "the caller"),
            frozenset(members(span["attributes"]).items()),
            tuple((event["name"], *members(event["attributes"])) for event in span.get("events", [])),
        )
        for span in known["spans"]
    }


def found(request: Request) -> set[Any]:
    told = spans(trtllm.Emitter().spans(request))
    names = {span.span_id: span.name for _, _, span in told} | {request.parent_span_id: "the caller"}
    return {
        (
            resource["service.name"],
            scope,
            span.name,
            span.kind,
            span.status.code,
            names[span.parent_span_id],
            frozenset(types(span.attributes).items()),
            tuple((event.name, *types(event.attributes)) for event in span.events),
        )
        for resource, scope, span in told
    }


@pytest.mark.parametrize(("name", "split"), [("trtllm-unified", False), ("trtllm-disagg", True)])
def test_the_spans_are_of_the_shape_that_the_sources_give(name: str, split: bool) -> None:
    assert {frozenset(found(request)) for request in requests("trtllm", split=split)} == {frozenset(expected(name))}


def test_times_are_seconds_from_when_the_executor_took_the_request() -> None:
    for request in requests("trtllm"):
        [(_, _, span)] = spans(trtllm.Emitter().spans(request))
        said = values(span.attributes)
        assert said["gen_ai.latency.time_in_queue"] == request.queue_s
        assert said["gen_ai.latency.time_to_first_token"] == pytest.approx(request.queue_s + request.prefill_s)
        assert said["gen_ai.latency.e2e"] == pytest.approx(request.queue_s + request.prefill_s + request.decode_s)
        assert (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9 == pytest.approx(said["gen_ai.latency.e2e"])
        assert span.start_time_unix_nano >= request.started_ns


def legs(request: Request) -> tuple[Span, Span, Span]:
    told = {resource["service.name"]: span for resource, _, span in spans(trtllm.Emitter().spans(request))}
    return told["trtllm-disagg-proxy"], told["trtllm-ctx"], told["trtllm-gen"]


def test_the_generation_server_goes_on_where_the_context_server_ends_and_the_state_moves_in_between() -> None:
    for request in requests("trtllm", split=True):
        proxy, context, generation = legs(request)
        assert context.end_time_unix_nano == generation.start_time_unix_nano
        assert proxy.start_time_unix_nano <= context.start_time_unix_nano
        assert generation.end_time_unix_nano <= proxy.end_time_unix_nano
        since, until = (event.time_unix_nano for event in generation.events)
        moved_s = values(generation.attributes)["gen_ai.latency.kv_cache_transfer_time"]
        assert (until - since) / 1e9 == pytest.approx(moved_s, abs=1e-6)
        assert moved_s == pytest.approx(request.kv_transfer_s, abs=1e-6)
        assert values(context.attributes)["gen_ai.usage.completion_tokens"] == 1
        assert values(generation.attributes)["gen_ai.usage.completion_tokens"] == request.output_tokens
        assert values(context.attributes)["gen_ai.request.id"] != values(generation.attributes)["gen_ai.request.id"]
        assert [event.attributes[0].value.string_value for event in proxy.events] == [
            request.prefill_at.replica if request.prefill_at else "",
            request.at.replica,
        ]


def test_the_workers_say_their_facts_and_the_proxy_none() -> None:
    request = requests("trtllm", split=True)[0]
    told = {resource["service.name"]: resource for resource, _, _ in spans(trtllm.Emitter().spans(request))}
    assert not any(key.startswith("leverwatch.") for key in told["trtllm-disagg-proxy"])
    for service, pool in (("trtllm-ctx", "prefill"), ("trtllm-gen", "decode")):
        assert (told[service]["leverwatch.pool"], told[service]["leverwatch.topology"]) == (pool, "pd-1p1d")
        assert told[service]["leverwatch.arm.disaggregation"] == dict(request.at.arms)["disaggregation"]


@pytest.mark.parametrize("outcome", ["aborted", "error"])
def test_of_a_request_that_did_not_complete_the_servers_say_nothing_and_the_proxy_an_error(outcome: Any) -> None:
    alone, split = (requests("trtllm", split=is_split)[0]._replace(outcome=outcome) for is_split in (False, True))
    assert list(trtllm.Emitter().spans(alone)) == []
    [(_, _, span)] = spans(trtllm.Emitter().spans(split))
    assert (span.name, span.status.code) == ("openai_chat", STATUSES["ERROR"])


def test_a_time_that_is_not_known_is_minus_one_as_in_the_first_builds() -> None:
    request = requests("trtllm")[0]._replace(ttft_s=-1.0, queue_s=-1.0)
    [(_, _, span)] = spans(trtllm.Emitter().spans(request))
    said = values(span.attributes)
    assert (said["gen_ai.latency.time_to_first_token"], said["gen_ai.latency.time_in_queue"]) == (-1.0, -1.0)
    assert said["gen_ai.latency.e2e"] == pytest.approx(request.prefill_s + request.decode_s)


def test_attempts_are_spans_of_their_own() -> None:
    first = requests("trtllm")[0]
    told = [spans(trtllm.Emitter().spans(first._replace(attempt=attempt)))[0][2] for attempt in (1, 2, 101)]
    assert len({span.span_id for span in told}) == 3
    ids = [values(span.attributes)["gen_ai.request.id"] for span in told]
    assert ids[0] == ids[2] != ids[1]


def test_the_answer_counts_tokens_and_those_of_an_iteration() -> None:
    for request in requests("trtllm", speculation=True):
        body = json.loads(json.dumps(trtllm_body.answer(request)))
        assert body["usage"] == {
            "prompt_tokens": request.prompt_tokens,
            "completion_tokens": request.output_tokens,
            "total_tokens": request.prompt_tokens + request.output_tokens,
            "prompt_tokens_details": {"cached_tokens": request.cached_tokens},
        }
        per_iteration = body["choices"][0]["avg_decoded_tokens_per_iter"]
        assert per_iteration is None or per_iteration * request.decode_steps == pytest.approx(request.output_tokens - 1)
    assert trtllm_body.answer(request._replace(outcome="aborted")) == {}
    assert trtllm_body.answer(request._replace(outcome="error"))["code"] == 500


def test_a_page_counts_what_the_server_did() -> None:
    told = events("trtllm", speculation=True, rate=12.0)
    pages: dict[str, trtllm_page.Page] = {}
    for event in told:
        if isinstance(event, Request):
            pages.setdefault(event.at.replica, trtllm_page.Page(event.at)).observe(event)
    seen = looks(told)
    for replica, page in pages.items():
        families = {family.name: family for family in text_string_to_metric_families(page.text(seen[replica]))}
        ended = [event for event in told if isinstance(event, Request) and event.at.replica == replica]
        samples = {(one.name, *sorted(one.labels.items())): one.value for family in families.values() for one in family.samples}
        labels = (("engine_type", "pytorch"), ("model_name", "m-8b"))
        assert samples["trtllm_e2e_request_latency_seconds_count", *labels] == len(ended)
        assert samples["trtllm_request_queue_time_seconds_sum", *labels] == pytest.approx(sum(request.queue_s for request in ended))
        assert samples["trtllm_prompt_cached_tokens_total", *labels] == seen[replica].cached_tokens
        assert samples["trtllm_num_requests_running", *labels] == seen[replica].running
        accepted = {key: value for key, value in samples.items() if key[0] == "trtllm_spec_decode_accepted_tokens_total"}
        assert sum(accepted.values()) == seen[replica].accepted_tokens
        assert bool(accepted) == (seen[replica].of.speculative_tokens is not None)
