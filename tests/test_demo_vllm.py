"""vLLM's emitter sends what vLLM sent when it was recorded, and what is told of a request is read as the request was."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo_dispatches import requests, rows, values
from demo_told import deployment, exported, moved, plain, recorded, request, shapes, told

from demo.engines import response_tap, vllm
from demo.engines.wire import TOLD_AGAIN

CHAT = deployment("vllm")


def test_the_span_is_the_recorded_one_but_for_our_own_facts(recordings: Path) -> None:
    real = {shape for shape in shapes(recorded(recordings, "vllm")) if shape[2] == "llm_request" and shape[6] == "remote"}
    ours = shapes(told([request(CHAT), request(CHAT, 2, temperature=0.0)], vllm.Emitter()))
    assert ours == real
    assert len(ours) == 2  # with a temperature, and without


def test_a_pair_s_spans_are_the_recorded_one_too(recordings: Path) -> None:
    real = {shape for shape in shapes(recorded(recordings, "vllm")) if shape[2] == "llm_request" and shape[6] == "remote"}
    assert shapes(told([moved("vllm")], vllm.Emitter())) < real


def test_a_replica_states_its_facts_and_its_arm_on_the_resource() -> None:
    [(resource, _, _)] = told([request(CHAT)], vllm.Emitter())
    assert {key: value for key, value in resource.items() if key.startswith(("leverwatch.", "service."))} == {
        "service.instance.id": "chat-0",
        "service.name": "vllm",
        "leverwatch.model": "m-70b",
        "leverwatch.hardware": "h100",
        "leverwatch.topology": "tp4",
        "leverwatch.gpus": "4",
        "leverwatch.lever.speculation": "ngram-4",
        "leverwatch.arm.speculation": "treated",
    }


@pytest.mark.parametrize("outcome", ["aborted", "error"])
def test_nothing_is_told_of_a_request_that_did_not_end_well(outcome: str) -> None:
    assert told([request(CHAT, outcome=outcome), moved("vllm", outcome=outcome)], vllm.Emitter()) == []


def test_a_pair_is_a_request_for_one_token_and_then_one_for_all() -> None:
    [(of_prefill, _, prefill), (of_decode, _, decode)] = told([moved("vllm")], vllm.Emitter())
    first, second = values(prefill.attributes), values(decode.attributes)
    assert (of_prefill["leverwatch.pool"], of_decode["leverwatch.pool"]) == ("prefill", "decode")
    assert (of_prefill["service.instance.id"], of_decode["service.instance.id"]) == ("p-0", "d-0")
    assert (first["gen_ai.usage.completion_tokens"], first["gen_ai.request.max_tokens"]) == (1, 1)
    assert (second["gen_ai.usage.completion_tokens"], second["gen_ai.request.max_tokens"]) == (201, 512)
    assert first["gen_ai.usage.prompt_tokens"] == second["gen_ai.usage.prompt_tokens"] == 1200
    assert first["gen_ai.request.id"] == second["gen_ai.request.id"]
    assert prefill.end_time_unix_nano <= decode.start_time_unix_nano
    assert second["gen_ai.latency.time_in_queue"] + second["gen_ai.latency.time_in_model_prefill"] == pytest.approx(
        second["gen_ai.latency.time_to_first_token"]
    )


def test_a_wait_that_is_said_to_be_minus_one_is_no_time_that_runs_backwards() -> None:
    unknown = moved("vllm", frontend_s=0.004, queue_s=-1.0, ttft_s=-1.0)
    [(_, _, prefill), (_, _, decode)] = told([unknown], vllm.Emitter())
    said = values(prefill.attributes)
    assert said["gen_ai.latency.time_in_queue"] == -1
    assert said["gen_ai.latency.e2e"] == pytest.approx(0.084)
    assert unknown.started_ns == prefill.start_time_unix_nano < prefill.end_time_unix_nano <= decode.start_time_unix_nano
    assert decode.end_time_unix_nano == vllm.end_ns(unknown)


def test_what_is_told_twice_has_the_same_caller_and_id_and_another_span_id() -> None:
    once = request(CHAT)
    [(_, _, first), (_, _, again)] = told([once, once._replace(attempt=1 + TOLD_AGAIN)], vllm.Emitter())
    assert first.span_id != again.span_id
    assert first.parent_span_id == again.parent_span_id
    assert values(first.attributes) == values(again.attributes)


def test_each_attempt_is_called_by_a_span_of_its_own() -> None:
    [(_, _, first), (_, _, second)] = told([request(CHAT), request(CHAT, attempt=2)], vllm.Emitter())
    assert first.trace_id == second.trace_id
    assert first.parent_span_id != second.parent_span_id


@pytest.mark.parametrize(("split", "tapped"), [(False, True), (True, True), (True, False)])
def test_each_request_is_one_row_with_its_numbers_arms_and_replicas(tmp_path: Path, split: bool, tapped: bool) -> None:
    served = requests("vllm", split=split, speculation=not split, rate=2.0)
    emitters = [vllm.Emitter(), response_tap.Emitter()] if tapped else [vllm.Emitter()]
    found = {row["trace_id"]: row for row in rows(tmp_path, traces=exported(served, *emitters))}
    assert len(found) == len(served) > 50
    for one in served:
        row = found[one.trace_id.hex()]
        assert (row["engine"], row["outcome"], row["flags"], row["model"]) == ("vllm", "ok", [], "m-8b")
        assert (row["prompt_tokens"], row["output_tokens"]) == (one.prompt_tokens, one.output_tokens)
        for name in ("queue_s", "prefill_s", "ttft_s", "decode_s", "e2e_s"):
            assert row[name] == pytest.approx(getattr(one, name), abs=2e-6), name
        assert row["temperature"] == one.temperature
        assert (row["replica"], row["prefill_replica"]) == (one.at.replica, one.prefill_at.replica if one.prefill_at else None)
        assert (dict(row["arms"]), dict(row["levers"])) == (dict(one.at.arms), dict(one.at.levers))
        if tapped:
            drafts = ("cached_tokens", "draft_tokens", "accepted_tokens", "verify_steps", "finish_reason")
            assert [row[name] for name in drafts] == [getattr(one, name) for name in drafts]


def test_of_an_aborted_request_the_tap_alone_says_so_and_where(tmp_path: Path) -> None:
    served = [request(CHAT, outcome="aborted"), plain(request(CHAT, 2, outcome="error"))]
    found = rows(tmp_path, traces=exported(served, vllm.Emitter(), response_tap.Emitter()))
    assert [(row["outcome"], row["replica"], row["flags"], row["output_tokens"]) for row in found] == [
        ("aborted", "chat-0", ["body_only"], None),
        ("error", "chat-0", ["body_only"], None),
    ]
    assert all(dict(row["arms"]) == {"speculation": "treated"} and row["model"] == "m-70b" for row in found)


def test_a_leg_that_is_told_twice_is_one_request_and_flagged(tmp_path: Path) -> None:
    once = request(CHAT)
    again = [once, once._replace(attempt=1 + TOLD_AGAIN)]
    [row] = rows(tmp_path, traces=exported(again, vllm.Emitter(), response_tap.Emitter()))
    assert (row["flags"], row["output_tokens"]) == (["duplicate_leg"], 201)
