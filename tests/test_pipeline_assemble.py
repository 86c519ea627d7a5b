"""Spans of one request, whatever their number and order, become one row with its tokens counted once."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.assemble import assemble
from pipeline.impossible import MOST
from pipeline.legs import NUMBERS, TEXTS
from pipeline.segments import Edges

BEGAN = datetime(2026, 11, 29, 12, tzinfo=UTC)
MORE_TEXTS = ("join_key", "phase", "pool", "accepted_by_position", "inferred")
SIGNAL_KINDS = {**dict.fromkeys(TEXTS, pl.String), **dict.fromkeys(MORE_TEXTS, pl.String)}
SIGNAL_KINDS |= {name: pl.Float64 if name.endswith("_s") or name in ("temperature", "kv_usage") else pl.Int64 for name in NUMBERS}
SCHEMA = {
    **dict.fromkeys(("trace_id", "span_id", "parent_span_id", "role", "dialect", "status", "replica", "sender"), pl.String),
    **dict.fromkeys(("started_at", "ended_at"), pl.Datetime("us", "UTC")),
    "duration_s": pl.Float64,
    **dict.fromkeys(("levers", "arms"), pl.List(pl.Struct({"key": pl.String, "value": pl.String}))),
    **SIGNAL_KINDS,
    "retried": pl.Int64,
}


def span(
    span_id: str, role: str | None, dialect: str | None, parent: str | None = None, at_s: float = 0.0, for_s: float = 1.0, **said: Any
) -> dict[str, Any]:
    began = BEGAN + timedelta(seconds=at_s)
    plain = {
        "trace_id": said.pop("trace_id", "t1"), "span_id": span_id, "parent_span_id": parent, "role": role, "dialect": dialect,
        "status": said.pop("status", "unset"), "started_at": began, "ended_at": began + timedelta(seconds=for_s), "duration_s": for_s,
        "replica": said.pop("replica", "r1"), "sender": said.pop("sender", "127.0.0.1"),
    }  # fmt: skip
    return plain | said


def rows_of(*spans: dict[str, Any]) -> list[dict[str, Any]]:
    frame = pl.DataFrame([{name: one.get(name) for name in SCHEMA} for one in spans], schema=SCHEMA)
    return assemble(frame, Edges()).requests.sort("started_at", "request_id").to_dicts()


def vllm(span_id: str = "e", parent: str | None = None, **said: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "request_id": "r-1", "join_key": "r-1", "prompt_tokens": 100, "output_tokens": 11, "ttft_s": 0.2, "e2e_s": 1.2, "decode_s": 1.0,
        "queue_s": 0.01,
    }  # fmt: skip
    return span(span_id, "engine", "vllm", parent, **(usual | said))


def test_client_and_engine_spans_of_one_request_count_once_and_the_engine_knows_the_tokens() -> None:
    client = span("c", "client", "openllmetry", for_s=2.0, prompt_tokens=90, output_tokens=10, model="m")
    between = span("p", None, None, "c")
    (row,) = rows_of(client, between, vllm(parent="p"))
    assert (row["engine"], row["gateway"]) == ("vllm", "openllmetry")
    assert (row["prompt_tokens"], row["output_tokens"], row["model"]) == (100, 11, "m")
    assert (row["e2e_s"], row["tpot_s"]) == (1.2, 0.1)


def test_a_body_brings_what_the_engine_does_not_say_and_is_named_as_its_source() -> None:
    body = span(
        "b",
        "body",
        "response_tap",
        request_id="r-1",
        cached_tokens=64,
        draft_tokens=40,
        accepted_tokens=10,
        verify_steps=10,
        prompt_tokens=100,
    )
    (row,) = rows_of(body, vllm(parent="b"))
    assert (row["cached_tokens"], row["cache_class"], row["draft_tokens"], row["accepted_tokens"]) == (64, "hit", 40, 10)
    sources = {pair["key"]: pair["value"] for pair in row["provenance"]}
    assert sources["cached_tokens"] == "body"
    assert sources["prompt_tokens"] == "span"
    assert sources["tpot_s"] == "derived"
    assert "queue_depth" not in sources


def test_prefill_and_decode_legs_are_one_request_with_cached_tokens_from_the_prefill_leg() -> None:
    prefill = span(
        "p", "engine", "sglang", join_key="room", phase="prefill", prompt_tokens=300, output_tokens=1, cached_tokens=150, replica="p0"
    )
    decode = span(
        "d",
        "engine",
        "sglang",
        join_key="room",
        phase="decode",
        at_s=0.5,
        prompt_tokens=300,
        output_tokens=21,
        cached_tokens=299,
        replica="d0",
        ttft_s=0.4,
        e2e_s=1.4,
        decode_s=1.0,
    )
    waiting = span("w", "stage", "sglang", "p", queue_s=0.03)
    transfer = span("x", "stage", "sglang", "p", kv_transfer_s=0.005)
    (row,) = rows_of(prefill, decode, waiting, transfer)
    assert (row["prompt_tokens"], row["output_tokens"], row["cached_tokens"]) == (300, 21, 150)
    assert (row["prefill_replica"], row["decode_replica"], row["replica"]) == ("p0", "d0", "d0")
    assert (row["queue_s"], row["kv_transfer_s"], row["tpot_s"]) == (0.03, 0.005, 0.05)


def test_the_samples_of_one_prompt_count_the_prompt_once_and_have_no_time_per_token() -> None:
    (row,) = rows_of(vllm("a", output_tokens=10), vllm("b", output_tokens=12))
    assert (row["prompt_tokens"], row["output_tokens"]) == (100, 22)
    assert row["tpot_s"] is None
    assert row["flags"] == ["multi_sample"]


def test_the_same_request_id_much_later_in_the_same_trace_is_another_request() -> None:
    assert len(rows_of(vllm("a"), vllm("b", at_s=60.0))) == 2


def test_a_retry_under_one_client_call_takes_the_last_answer() -> None:
    client = span("c", "client", "genai", for_s=5.0)
    failed = vllm("a", "c", request_id="r-1", join_key="r-1", output_tokens=None, status="error")
    answered = vllm("b", "c", at_s=2.0, request_id="r-2", join_key="r-2", output_tokens=7)
    (row,) = rows_of(client, failed, answered)
    assert (row["request_id"], row["output_tokens"], row["prompt_tokens"]) == ("r-2", 7, 100)


def test_stage_and_housekeeping_spans_alone_are_no_request() -> None:
    assert rows_of(span("s", "stage", "dynamo"), span("h", "housekeeping", "vllm"), span("u", None, None)) == []


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ({}, "ok"),
        ({"status": "error"}, "error"),
        ({"finish_reason": "abort"}, "aborted"),
        ({"outcome": "aborted", "status": "error"}, "aborted"),
    ],
)
def test_the_outcome_is_the_engines_word_then_the_status_then_the_finish_reason(said: dict[str, Any], outcome: str) -> None:
    (row,) = rows_of(vllm(**said))
    assert row["outcome"] == outcome


def test_a_failed_request_counts_and_what_it_does_not_say_is_null() -> None:
    (row,) = rows_of(span("c", "client", "genai", status="error", model="m"))
    assert (row["outcome"], row["prompt_tokens"], row["output_tokens"], row["decode_s"], row["tpot_s"]) == ("error", None, None, None, None)


def test_decode_time_is_never_mixed_from_two_observation_points() -> None:
    client = span("c", "client", "genai", for_s=9.0, e2e_s=9.0)
    (row,) = rows_of(client, vllm(parent="c", e2e_s=None, ttft_s=0.2, decode_s=None, for_s=1.2))
    assert row["e2e_s"] in (9.0, 1.2)
    if row["e2e_s"] == 9.0:
        assert row["decode_s"] is None


def test_impossible_values_are_set_aside_with_the_trap_they_fell_into() -> None:
    frame = pl.DataFrame([{name: vllm(cached_tokens=500, ttft_s=-1.0).get(name) for name in SCHEMA}], schema=SCHEMA)
    assembled = assemble(frame, Edges())
    (row,) = assembled.requests.to_dicts()
    assert (row["cached_tokens"], row["ttft_s"]) == (None, None)
    assert row["flags"] == ["clock_skew", "quarantined", "trap:ttft_s_minus_one", "trap:cached_above_prompt"]
    taken = {item["column"]: (item["value"], item["reason"]) for item in assembled.quarantine.to_dicts()}
    assert taken["cached_tokens"][0] == "500"
    assert "vllm#25780" in taken["cached_tokens"][1]
    assert "negative" in taken["ttft_s"][1]


@pytest.mark.parametrize("column", [column for columns in MOST.values() for column in columns if column != "tpot_s"])
@pytest.mark.parametrize("odd", [2**63 - 1, -(2**63), 1e300, float("inf"), float("nan")])
def test_a_number_that_no_request_can_have_is_set_aside_and_nothing_derived_from_it_stays(column: str, odd: float) -> None:
    whole = SCHEMA[column] == pl.Int64
    if whole and isinstance(odd, float):
        return
    usual = {"decode_s": 1.0, "kv_transfer_s": 1.0}
    frame = pl.DataFrame([{name: vllm(**(usual | {column: odd})).get(name) for name in SCHEMA}], schema=SCHEMA, strict=False)
    assembled = assemble(frame, Edges())
    (row,) = assembled.requests.to_dicts()
    assert row[column] is None
    assert "quarantined" in row["flags"]
    taken = {item["column"]: item["reason"] for item in assembled.quarantine.to_dicts()}
    assert column in taken[column]
    if column in ("decode_s", "output_tokens"):
        assert row["tpot_s"] is None


def test_large_but_possible_numbers_stay() -> None:
    (row,) = rows_of(vllm(prompt_tokens=10_000_000, output_tokens=1_000_000, e2e_s=90_000.0, decode_s=80_000.0, temperature=2.0, gpus=576))
    assert row["flags"] == []
    assert (row["prompt_tokens"], row["output_tokens"], row["decode_s"]) == (10_000_000, 1_000_000, 80_000.0)


def test_a_ring_of_parents_ends() -> None:
    assert len(rows_of(vllm("a", "b", join_key=None), vllm("b", "a", join_key=None))) <= 2


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_the_order_of_arrival_changes_nothing(seed: int) -> None:
    spans = [
        span("c", "client", "openllmetry", for_s=3.0, model="m"),
        span("p", None, None, "c"),
        vllm("e", "p", replica="r9"),
        span("q", "engine", "sglang", trace_id="t2", join_key="room", phase="prefill", cached_tokens=10, prompt_tokens=20),
        span("d", "engine", "sglang", trace_id="t2", join_key="room", phase="decode", prompt_tokens=20, output_tokens=5),
        span("w", "stage", "sglang", "q", trace_id="t2", queue_s=0.1),
        vllm("x", trace_id="t3"),
        vllm("y", trace_id="t3", output_tokens=3),
    ]
    expected = rows_of(*spans)
    random.Random(seed).shuffle(spans)
    assert rows_of(*spans) == expected


def test_absurd_counts_of_several_legs_do_not_wrap_to_a_plausible_sum() -> None:
    (row,) = rows_of(*(vllm(name, output_tokens=2**62) for name in "abcd"))
    assert (row["output_tokens"], row["flags"]) == (None, ["multi_sample", "quarantined", "trap:output_tokens_beyond"])
    assert "output_tokens" not in {pair["key"] for pair in row["provenance"]}


def test_another_ranks_copy_of_the_stages_says_nothing() -> None:
    spans = [
        span("root", "engine", "sglang", join_key="k", output_tokens=5),
        span("th0", "stage", "sglang", "root"), span("q0", "stage", "sglang", "th0", queue_s=0.02),
        span("th1", "duplicate", "sglang", "root"), span("q1", "stage", "sglang", "th1", queue_s=0.09, at_s=-1.0, preemptions=1),
    ]  # fmt: skip
    (row,) = rows_of(*spans)
    assert (row["queue_s"], row["preemptions"], row["flags"]) == (0.02, None, [])


def test_the_first_prefill_counts_and_not_the_one_after_a_retraction() -> None:
    root = span("root", "engine", "sglang", join_key="k", output_tokens=5)
    first = span("p1", "stage", "sglang", "root", at_s=0.1, prefill_s=0.1, batch_at_admission=3)
    retracted = span("th", "stage", "sglang", "root", preemptions=1)
    again = span("p2", "stage", "sglang", "root", at_s=0.5, prefill_s=0.2, batch_at_admission=1, preemptions=1)
    (row,) = rows_of(again, retracted, first, root)
    assert (row["prefill_s"], row["batch_at_admission"], row["preemptions"], row["flags"]) == (0.1, 3, 2, ["preempted"])


def test_the_nearer_leg_of_two_above_an_engine_span_is_its_leg_and_times_are_those_of_the_whole_request() -> None:
    """llm-d's decode span hangs below its prefill span, which has ended."""
    spans = [
        span("g", "gateway", "llm-d", for_s=2.0),
        span("pf", "stage", "llm-d", "g", phase="prefill", for_s=0.4),
        vllm("vp", "pf", at_s=0.1, for_s=0.3, output_tokens=1, queue_s=0.009, prefill_s=0.126, ttft_s=0.3, e2e_s=0.3, decode_s=0.0),
        span("dc", "stage", "llm-d", "pf", phase="decode", at_s=0.5),
        vllm("vd", "dc", at_s=0.5, for_s=1.4, queue_s=0.002, prefill_s=0.007, ttft_s=0.05, e2e_s=1.4, decode_s=1.35, replica="d"),
    ]
    (row,) = rows_of(*spans)
    assert (row["output_tokens"], row["prompt_tokens"], row["queue_s"], row["prefill_s"], row["decode_s"]) == (11, 100, 0.009, 0.126, 1.35)
    assert (row["ttft_s"], row["e2e_s"]) == (pytest.approx(0.45), pytest.approx(1.8))
    assert (row["engine"], row["gateway"], row["replica"], row["flags"]) == ("vllm", "llm-d", "d", [])
    assert {pair["key"]: pair["value"] for pair in row["provenance"]}["ttft_s"] == "derived"


def test_an_engine_request_of_one_token_before_another_of_the_same_prompt_and_key_is_its_prefill() -> None:
    first = vllm("a", for_s=0.2, output_tokens=1, decode_s=0.0, cached_tokens=40, replica="p")
    second = vllm("b", at_s=0.2, cached_tokens=99, replica="d", trace_id="t2")
    (row,) = rows_of(first, second)
    assert (row["output_tokens"], row["cached_tokens"], row["prefill_replica"], row["decode_replica"]) == (11, 40, "p", "d")
    assert len(rows_of(first, second | {"prompt_tokens": 7})) == 2


def test_a_prefill_leg_alone_is_partial_and_its_one_token_is_not_the_answers_length() -> None:
    (row,) = rows_of(vllm(phase="prefill", output_tokens=1))
    assert (row["output_tokens"], row["decode_s"], row["prompt_tokens"], row["flags"]) == (None, None, 100, ["partial"])


def test_a_pool_names_the_leg_that_nothing_else_names() -> None:
    (row,) = rows_of(vllm("a", pool="prefill", output_tokens=1), vllm("b", pool="decode", at_s=0.5))
    assert (row["output_tokens"], row["flags"]) == (11, [])


def test_what_a_span_says_by_leaving_it_out_is_derived_and_an_engines_word() -> None:
    for said, source in (({"inferred": "temperature"}, "derived"), ({}, "span")):
        (alone,) = rows_of(vllm(temperature=0.0, **said))
        (joined,) = rows_of(span("c", "client", "openllmetry", for_s=2.0, temperature=0.7), vllm(parent="c", temperature=0.0, **said))
        for row in (alone, joined):
            assert (row["temperature"], row["temperature_bucket"]) == (0.0, "<0.3")
            assert {pair["key"]: pair["value"] for pair in row["provenance"]}["temperature"] == source


def test_a_gateway_that_forwards_its_callers_context_stands_beside_its_engine_and_is_one_request_with_it() -> None:
    gateway = span("g", "gateway", "litellm", "caller", for_s=2.0, join_key="other", prompt_tokens=100)
    (row,) = rows_of(gateway, vllm(parent="caller", at_s=0.2))
    assert (row["engine"], row["gateway"], row["output_tokens"]) == ("vllm", "litellm", 11)


@pytest.mark.parametrize(
    "other",
    [
        vllm(parent="caller", at_s=5.0),
        vllm(parent="another", at_s=0.2),
        vllm(parent="caller", at_s=0.2, prompt_tokens=7),
        vllm(parent=None, at_s=0.2),
    ],
    ids=["later", "of another caller", "of another prompt", "of no caller"],
)
def test_an_engine_span_beside_a_gateway_that_cannot_be_its_own_is_another_request(other: dict[str, Any]) -> None:
    gateway = span("g", "gateway", "litellm", "caller", for_s=2.0, join_key="other", prompt_tokens=100)
    assert len(rows_of(gateway, other)) == 2


def test_engine_requests_below_one_foreign_span_stay_apart() -> None:
    """vLLM takes its process's TRACEPARENT where a request brings none: all requests then have one parent that nobody sent."""
    rows = rows_of(*(vllm(f"s{number}", "foreign", request_id=f"r-{number}", join_key=f"r-{number}") for number in range(20)))
    assert [row["output_tokens"] for row in rows] == [11] * 20


def test_where_two_gateway_spans_may_have_called_an_engine_it_is_given_to_neither() -> None:
    gateways = [span(name, "gateway", "litellm", "caller", for_s=2.0, join_key=name) for name in "gh"]
    assert len(rows_of(*gateways, vllm(parent="caller", at_s=0.2))) == 3


def test_calls_that_were_tried_again_are_one_request_with_the_last_answer_and_its_outcome() -> None:
    spans = [
        span("s", "gateway", "litellm", for_s=3.0),
        span("c1", "gateway", "litellm", "s", status="error", prompt_tokens=90, output_tokens=2),
        span("c2", "gateway", "litellm", "s", at_s=1.0, for_s=1.5, prompt_tokens=100, output_tokens=7),
    ]
    (row,) = rows_of(*spans)
    assert (row["outcome"], row["prompt_tokens"], row["output_tokens"]) == ("ok", 100, 7)


def test_attempts_of_one_engine_request_are_flagged_and_the_last_that_answered_counts() -> None:
    client = span("c", "client", "genai", for_s=9.0)
    attempts = [
        vllm("a", "c", samples_n=1, output_tokens=3),
        vllm("b", "c", at_s=2.0, samples_n=1),
        vllm("x", "c", at_s=4.0, output_tokens=None),
    ]
    (row,) = rows_of(client, *(one | {"samples_n": 1} for one in attempts))
    assert (row["output_tokens"], row["tpot_s"], row["flags"]) == (11, 0.1, ["retried"])


def test_a_leg_that_is_told_twice_counts_once_and_is_flagged() -> None:
    (row,) = rows_of(vllm("a", samples_n=1), vllm("b", samples_n=1))
    assert (row["output_tokens"], row["prompt_tokens"], row["tpot_s"], row["flags"]) == (11, 100, 0.1, ["duplicate_leg"])


def test_the_tokens_of_a_request_that_moved_to_another_worker_are_its_gateways() -> None:
    spans = [
        span("h", "gateway", "dynamo", for_s=3.0, prompt_tokens=100, output_tokens=30, join_key="k"),
        span("r", "stage", "dynamo", "h", retried=1),
        vllm("b", "r", at_s=1.0, prompt_tokens=119, output_tokens=11, samples_n=1),
    ]
    (row,) = rows_of(*spans)
    assert (row["prompt_tokens"], row["output_tokens"], row["flags"]) == (100, 30, ["retried"])


def test_the_word_of_the_gateway_counts_before_that_of_one_attempt() -> None:
    spans = [
        span("h", "gateway", "dynamo", outcome="ok"),
        span("a", "stage", "dynamo", "h", outcome="error"),
        vllm("b", "h"),
    ]
    assert rows_of(*spans)[0]["outcome"] == "ok"


def test_a_log_record_brings_what_neither_engine_nor_gateway_says_and_is_named_as_its_source() -> None:
    gateway = span("h", "gateway", "dynamo", join_key="k", prompt_tokens=100, output_tokens=9)
    log = span("l", "log", "dynamo", join_key="k", trace_id="t2", cached_tokens=64, queue_s=0.009, prompt_tokens=100)
    (row,) = rows_of(gateway, log)
    assert (row["cached_tokens"], row["queue_s"], row["trace_id"], row["engine"]) == (64, 0.009, "t1", "dynamo")
    sources = {pair["key"]: pair["value"] for pair in row["provenance"]}
    assert (sources["cached_tokens"], sources["prompt_tokens"]) == ("log", "span")
    assert rows_of(log)[0]["flags"] == ["log_only"]


def test_a_body_without_its_engine_is_flagged_and_no_engine_is_made_of_it() -> None:
    (row,) = rows_of(span("b", "body", "response_tap", join_key="k", accepted_by_position="[80, 32, 16]"))
    assert (row["engine"], row["flags"], row["accepted_by_position"]) == (None, ["body_only"], [80, 32, 16])
    assert {"key": "accepted_by_position", "value": "body"} in rows_of(
        vllm(), span("b", "body", "response_tap", "e", accepted_by_position="[1]")
    )[0]["provenance"]


def test_a_body_of_another_trace_joins_its_engine_by_the_id_that_either_states() -> None:
    body = span("b", "body", "response_tap", request_id="rid", join_key="rid", trace_id="t2", draft_tokens=8, accepted_tokens=4)
    engine = span("d", "engine", "sglang", request_id="rid", join_key="room", output_tokens=5)
    (row,) = rows_of(body, engine)
    assert (row["draft_tokens"], row["request_id"], row["engine"]) == (8, "rid", "sglang")


def test_a_body_in_the_trace_of_a_pair_joins_it_by_the_id_of_one_leg() -> None:
    body = span("b", "body", "response_tap", request_id="rid", join_key="rid", draft_tokens=8, accepted_tokens=4)
    legs = [
        span(name, "engine", "sglang", "nobody", request_id=rid, join_key="room", phase=name, output_tokens=tokens)
        for name, rid, tokens in (("prefill", "other", 1), ("decode", "rid", 5))
    ]
    (row,) = rows_of(body, *legs)
    assert (row["draft_tokens"], row["output_tokens"], row["engine"]) == (8, 5, "sglang")


def test_a_body_joins_the_leg_below_a_gateway_that_states_no_id() -> None:
    body = span("b", "body", "response_tap", join_key="r-1", trace_id="t2", cached_tokens=10)
    (row,) = rows_of(span("g", "gateway", "llm-d", for_s=2.0), vllm(parent="g"), body)
    assert (row["cached_tokens"], row["gateway"], row["trace_id"]) == (10, "llm-d", "t1")


def test_requests_of_different_traces_that_use_one_id_at_once_stay_apart_and_a_body_is_given_to_neither() -> None:
    body = span("b", "body", "response_tap", join_key="r-1", trace_id="t3", cached_tokens=10)
    rows = rows_of(vllm("a", samples_n=1), vllm("c", samples_n=1, trace_id="t2"), body)
    assert [row["cached_tokens"] for row in rows].count(None) == 2
    assert len(rows) == 3


def test_samples_of_one_prompt_in_traces_of_their_own_count_the_prompt_once() -> None:
    (row,) = rows_of(*(vllm(name, samples_n=2, trace_id=name) for name in "ab"))
    assert (row["prompt_tokens"], row["output_tokens"], row["flags"]) == (100, 22, ["multi_sample"])


def test_samples_with_ids_of_their_own_under_one_caller_are_summed() -> None:
    roots = [vllm(name, "c", join_key=name, request_id=name, samples_n=2) for name in "ab"]
    (row,) = rows_of(span("c", "client", "genai", for_s=2.0), *roots)
    assert (row["prompt_tokens"], row["output_tokens"], row["flags"]) == (100, 22, ["multi_sample"])


def test_an_id_that_joins_nothing_elsewhere_joins_nothing_even_if_it_is_the_same() -> None:
    numbered = [
        vllm(name, trace_id=name, request_id="42", join_key=None, phase=phase) for name, phase in (("a", "prefill"), ("b", "decode"))
    ]
    assert len(rows_of(*numbered)) == 2


@pytest.mark.parametrize(
    "spans",
    [
        [vllm(ttft_s=-0.5)],
        [vllm(for_s=-1.0, e2e_s=None)],
        [span("g", "gateway", "litellm", at_s=5.0), vllm(parent="g")],
        [span("g", "gateway", "litellm", for_s=1.5), vllm(parent="g", at_s=0.61)],
        [span("b", "body", "tap", join_key="r-1", for_s=1.5), vllm(parent="b", at_s=2.0)],
        [vllm("p", phase="prefill", at_s=3.0), vllm("d", phase="decode")],
    ],
    ids=[
        "negative time",
        "ends before it starts",
        "starts before its caller",
        "ends after its caller",
        "starts after its caller's end",
        "decodes before it prefills",
    ],
)
def test_times_that_contradict_each_other_are_flagged(spans: list[dict[str, Any]]) -> None:
    (row,) = rows_of(*spans)
    assert "clock_skew" in row["flags"]


@pytest.mark.parametrize(
    ("caller", "engine"),
    [
        ({"for_s": 1.5}, {"at_s": 0.59}),
        ({"for_s": 0.5}, {"at_s": 0.1}),
        ({"for_s": 1.5, "outcome": "aborted"}, {"at_s": 1.0}),
        ({"for_s": 1.5, "status": "error"}, {"at_s": 1.0}),
    ],
    ids=["within the slack", "longer than its caller", "of a caller that went away", "of a caller that gave up"],
)
def test_an_engine_that_outlasts_its_caller_for_a_reason_has_a_right_clock(caller: dict[str, Any], engine: dict[str, Any]) -> None:
    (row,) = rows_of(span("g", "gateway", "litellm", **caller), vllm(parent="g", **engine))
    assert "clock_skew" not in row["flags"]


def test_end_to_end_and_first_token_are_of_one_observer_where_a_record_beside_states_both_too() -> None:
    gateway = span("h", "gateway", "dynamo", join_key="k", for_s=1.0, ttft_s=0.2, output_tokens=9)
    log = span("l", "log", "dynamo", join_key="k", trace_id="t2", ttft_s=0.19, e2e_s=0.98)
    (row,) = rows_of(gateway, log)
    assert (row["ttft_s"], row["e2e_s"], row["decode_s"], row["tpot_s"]) == (0.2, 1.0, 0.8, 0.1)
    (row,) = rows_of(gateway | {"ttft_s": None}, log)
    assert (row["ttft_s"], row["e2e_s"], row["decode_s"]) == (0.19, 0.98, 0.79)


def test_the_gateway_is_named_before_the_client() -> None:
    client = span("c", "client", "openllmetry", for_s=3.0)
    (row,) = rows_of(client, span("g", "gateway", "envoy", "c", for_s=2.0), vllm(parent="g"))
    assert row["gateway"] == "envoy"


def test_what_waits_for_other_traces_is_kept_under_its_ids_and_a_whole_request_waits_for_nothing() -> None:
    def waiting(*spans: dict[str, Any]) -> set[tuple[str, str]]:
        frame = pl.DataFrame([{name: one.get(name) for name in SCHEMA} for one in spans], schema=SCHEMA)
        return set(assemble(frame, Edges()).open_keys.select("join_key", "trace_id").rows())

    body = span("b", "body", "response_tap", join_key="r-1")
    assert waiting(vllm()) == waiting(body, vllm()) == waiting(vllm("p", phase="prefill"), vllm("d", phase="decode")) == set()
    assert waiting(body) == {("r-1", "t1")}
    assert waiting(vllm(phase="decode", request_id="rid")) == {("r-1", "t1"), ("rid", "t1")}
    assert waiting(body | {"trace_id": "t2"}, vllm()) == {("r-1", "t2")}


def test_where_only_a_tap_speaks_its_replica_served_and_beside_an_engine_the_engines_did() -> None:
    tap = span("b", "body", "response_tap", replica="pod-7", request_id="r-9", cached_tokens=5)
    assert [row["replica"] for row in rows_of(tap)] == ["pod-7"]
    below = span("e", "engine", "vllm", "b", replica="r1", request_id="r-9", output_tokens=3)
    assert [row["replica"] for row in rows_of(tap, below)] == ["r1"]
    unnamed = span("b", "body", "response_tap", replica="127.0.0.1", request_id="r-9", cached_tokens=5)
    assert [row["flags"] for row in rows_of(unnamed)] == [["body_only", "replica_from_sender"]]
