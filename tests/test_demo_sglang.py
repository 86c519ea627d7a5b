"""SGLang's emitter sends what SGLang's tracing sent when it was recorded, unified and as a pair, and it is read as the request was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from demo_dispatches import requests, rows, types, values
from demo_told import Told, deployment, exported, generic, moved, recorded, request, shapes, told
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from demo.engines import response_tap, sglang
from demo.engines.wire import TOLD_AGAIN
from demo.records import Request

WORKER = deployment("sglang")
SINGLE_STEPS = {"chunked_prefill", "fake_output", "decode_loop", "spec_draft"}
NOT_RECORDED = frozenset({"gen_ai.response.finish_reasons"})
"""The recording's driver did not come to set it; the engine does."""
HAND_MADE = Path(__file__).parents[1] / "../shared/data/span_shapes.json"


def traces(seen: list[Told], *, pairs: bool) -> list[Told]:
    """The spans of the traces that are pairs or are not, without single steps; of unified requests those that somebody called."""
    shared = {span.trace_id for _, _, span in seen if span.name.startswith("prefill Req ")}
    called = {span.trace_id for _, _, span in seen if " Req " in span.name and span.parent_span_id}
    kept = shared if pairs else called - shared
    return [one for one in seen if one[2].trace_id in kept and one[2].name not in SINGLE_STEPS]


def hand_made(name: str) -> dict[str, Any]:
    if not HAND_MADE.is_file():
        pytest.skip(f"no shapes beside the checkout: {HAND_MADE}")
    found: dict[str, Any] = next(shape for shape in json.loads(HAND_MADE.read_text())["shapes"] if shape["id"] == name)
    return found


def by_name(seen: list[Told]) -> dict[str, Span]:
    return {generic(span.name): span for _, _, span in seen}


def test_a_unified_request_has_the_spans_that_were_recorded(recordings: Path) -> None:
    real = shapes(traces(recorded(recordings, "sglang-isolated"), pairs=False))
    assert shapes(told([request(WORKER)], sglang.Emitter()), NOT_RECORDED) == real
    assert len(real) == 10  # the root, two processes, seven stages


def test_a_pair_has_the_spans_that_were_recorded(recordings: Path) -> None:
    real = shapes(traces(recorded(recordings, "sglang-isolated"), pairs=True))
    assert shapes(told([moved("sglang")], sglang.Emitter()), NOT_RECORDED) == real
    assert len(real) == 18  # per leg: the root, two processes, five stages; and two stages that both legs have


def test_the_first_forward_pass_has_the_event_of_its_schedule() -> None:
    shape = hand_made("sglang-0.5.23-unified-tp2")
    [real] = next(span for span in shape["spans"] if span["name"] == "prefill_forward")["events"]
    spans = by_name(told([request(WORKER)], sglang.Emitter()))
    assert [name for name, span in spans.items() if span.events] == ["prefill_forward"]
    [event] = spans["prefill_forward"].events
    assert event.name == real["name"]
    assert list(types(event.attributes)) == list(real["attributes"])
    assert values(event.attributes)["batch_size"] == 8
    assert values(event.attributes)["forward_mode"] == "prefill"


def test_the_finish_reason_is_a_text_that_holds_a_list() -> None:
    shape = hand_made("sglang-0.5.23-unified-tp2")
    real = shape["spans"][0]["attributes"]["gen_ai.response.finish_reasons"]
    root = by_name(told([request(WORKER)], sglang.Emitter()))[" Req *"]
    assert (types(root.attributes)["gen_ai.response.finish_reasons"], real["t"]) == ("string_value", "string")
    assert values(root.attributes)["gen_ai.response.finish_reasons"] == real["v"] == '["stop"]'


@pytest.mark.parametrize("outcome", ["aborted", "error"])
def test_a_request_that_is_broken_off_has_no_usage_and_a_failed_process(outcome: str) -> None:
    shape = {span["id"]: span for span in hand_made("sglang-0.5.23-abort")["spans"]}
    spans = by_name(told([request(WORKER, outcome=outcome)], sglang.Emitter()))
    root, scheduler = spans[" Req *"], spans["Scheduler [TP 0]  [PP 0]  [DP 0] (host:* | pid:*)"]
    assert set(shape["root"]["attributes"]) <= set(types(root.attributes))
    assert not [key for key in types(root.attributes) if key.startswith(("gen_ai.usage", "gen_ai.request"))]
    assert set(shape["th"]["attributes"]) <= set(types(scheduler.attributes))
    assert types(scheduler.attributes)["reason"] == "string_value"
    assert (scheduler.status.code, root.status.code) == (Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET)


def test_each_preemption_is_an_event_of_the_process_that_decodes() -> None:
    shape = next(span for span in hand_made("sglang-0.5.23-retract")["spans"] if span["id"] == "th")
    for one in (request(WORKER, preemptions=2), moved("sglang", preemptions=2)):
        retracted = [span for _, _, span in told([one], sglang.Emitter()) if any(event.name == "retract" for event in span.events)]
        [span] = retracted
        assert generic(span.name).startswith("Scheduler")
        assert [event.name for event in span.events] == [shape["events"][0]["name"]] * 2
        assert all(span.start_time_unix_nano < event.time_unix_nano < span.end_time_unix_nano for event in span.events)


def test_times_of_stages_are_the_request_s() -> None:
    spans = by_name(told([request(WORKER)], sglang.Emitter()))
    took = {name: (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9 for name, span in spans.items()}
    assert took["prefill_waiting"] == pytest.approx(0.05)
    assert took["prefill_forward"] == pytest.approx(0.08)
    assert took["decode_waiting"] + took["decode_forward"] == pytest.approx(2.0)
    said = values(spans[" Req *"].attributes)
    assert said["gen_ai.latency.time_to_first_token"] == 0.134
    assert said["gen_ai.latency.time_in_model_decode"] == pytest.approx(2.0)
    assert said["gen_ai.latency.time_in_model_prefill"] == pytest.approx(0.05 + 0.08 + 0.4 * 0.004)  # with the queue, from dispatch on


@pytest.mark.parametrize("made", [request(WORKER), moved("sglang")])
def test_a_wait_that_is_said_to_be_minus_one_is_a_stage_of_no_length(made: Request) -> None:
    seen = told([made._replace(queue_s=-1.0, ttft_s=-1.0)], sglang.Emitter())
    assert all(made.started_ns <= span.start_time_unix_nano <= span.end_time_unix_nano for _, _, span in seen)
    waiting = by_name(seen)["prefill_waiting"]
    assert waiting.start_time_unix_nano == waiting.end_time_unix_nano
    assert -1 in [values(span.attributes).get("gen_ai.latency.time_to_first_token") for _, _, span in seen]


def test_the_two_legs_share_trace_room_and_caller_and_the_tokens_are_the_decode_leg_s() -> None:
    spans = by_name(told([moved("sglang")], sglang.Emitter()))
    prefill, decode = spans["prefill Req *"], spans["decode Req *"]
    first, second = values(prefill.attributes), values(decode.attributes)
    assert prefill.name == f"prefill Req {first['rid'][:8]}"
    assert first["bootstrap_room"] == second["bootstrap_room"]
    assert first["rid"] != second["rid"]
    assert prefill.parent_span_id == decode.parent_span_id
    assert (first["gen_ai.usage.completion_tokens"], second["gen_ai.usage.completion_tokens"]) == (1, 201)
    moving = spans["prefill_transfer_kv_cache"]
    assert (moving.end_time_unix_nano - moving.start_time_unix_nano) / 1e9 == pytest.approx(0.02)
    assert spans["decode_forward"].start_time_unix_nano >= moving.end_time_unix_nano - 1_000_000


def test_what_is_told_twice_has_the_same_id_under_other_spans() -> None:
    once = request(WORKER)
    seen = told([once, once._replace(attempt=1 + TOLD_AGAIN)], sglang.Emitter())
    assert len({span.span_id for _, _, span in seen}) == 20
    assert len({values(span.attributes)["rid"] for _, _, span in seen if " Req " in span.name}) == 1


@pytest.mark.parametrize(("split", "tapped"), [(False, True), (True, True), (False, False), (True, False)])
def test_each_request_is_one_row_with_its_numbers_arms_and_replicas(tmp_path: Path, split: bool, tapped: bool) -> None:
    served = requests("sglang", split=split, speculation=not split, rate=2.0)
    emitters = [sglang.Emitter(), response_tap.Emitter()] if tapped else [sglang.Emitter()]
    found = {row["trace_id"]: row for row in rows(tmp_path, traces=exported(served, *emitters))}
    assert len(found) == len(served) > 50
    for one in served:
        row = found[one.trace_id.hex()]
        assert (row["engine"], row["outcome"], row["flags"], row["model"]) == ("sglang", "ok", [], "m-8b")
        for name in ("prompt_tokens", "cached_tokens", "output_tokens", "finish_reason"):
            assert row[name] == getattr(one, name), name
        for name in ("queue_s", "prefill_s", "ttft_s", "decode_s", "kv_transfer_s"):
            assert row[name] == pytest.approx(getattr(one, name), abs=2e-6), name
        assert row["e2e_s"] == pytest.approx(one.ttft_s + one.decode_s, abs=2e-6)
        assert row["batch_at_admission"] == (1 if split else one.batch + 1)
        assert (row["replica"], row["prefill_replica"]) == (one.at.replica, one.prefill_at.replica if one.prefill_at else None)
        assert (dict(row["arms"]), dict(row["levers"])) == (dict(one.at.arms), dict(one.at.levers))
        if tapped:
            assert [row[name] for name in ("draft_tokens", "accepted_tokens", "verify_steps")] == [
                one.draft_tokens, one.accepted_tokens, one.verify_steps,
            ]  # fmt: skip


def test_an_aborted_request_is_read_as_such_without_tokens(tmp_path: Path) -> None:
    served = [request(WORKER, outcome="aborted"), request(WORKER, 2, preemptions=3)]
    found = rows(tmp_path, traces=exported(served, sglang.Emitter()))
    assert [(row["outcome"], row["output_tokens"], row["preemptions"], row["flags"]) for row in found] == [
        ("aborted", None, None, []),
        ("ok", 201, 3, ["preempted"]),
    ]
