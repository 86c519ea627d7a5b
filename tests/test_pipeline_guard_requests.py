"""What one request's values cannot be: each row is caught just past its bound, and left alone just short of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from guard_rows import requests, samples, schema
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.guard import checked
from pipeline.guard_requests import REQUEST_TRAPS
from pipeline.impossible import BUCKETS, TRAPS, quarantined

USUAL: dict[str, Any] = {
    "prompt_tokens": 4000, "cached_tokens": 1600, "output_tokens": 101, "queue_s": 0.1, "prefill_s": 0.2, "ttft_s": 0.5, "e2e_s": 3.5,
    "decode_s": 3.0, "tpot_s": 0.03, "draft_tokens": 120, "accepted_tokens": 60, "verify_steps": 40, "accepted_by_position": [30, 20, 10],
    "kv_transfer_bytes": 1_000_000_000, "kv_transfer_s": 0.1, "link_peak_bytes_per_s": 50e9, "kv_usage": 0.5, "kv_block_tokens": 16,
}  # fmt: skip
PAIR = {"prefill_replica": "p", "decode_replica": "r1"}
# A trap, the values that fall into it, and the same as they may be.
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("cached_above_prompt", {"cached_tokens": 4001}, {"cached_tokens": 4000}),
    ("cached_by_decode_leg", {**PAIR, "cached_tokens": 3999}, {**PAIR, "cached_tokens": 3984}),
    ("cached_by_decode_leg", {**PAIR, "prompt_tokens": 3990, "cached_tokens": 3990}, {"prompt_tokens": 3990, "cached_tokens": 3990}),
    ("cached_by_decode_leg", {**PAIR, "cached_tokens": 3999}, {**PAIR, "cached_tokens": 3999, "engine": "sglang"}),
    ("cached_below_block", {"kv_block_tokens": 4001}, {"kv_block_tokens": 4000}),
    ("accepted_above_drafted", {"accepted_tokens": 121}, {"accepted_tokens": 120}),
    (
        "accepted_off_by_one",  # one draft a step too few of 101 tokens in 40 steps
        {"engine": "sglang", "accepted_tokens": 20, "accepted_by_position": [10, 5, 5]},
        {"engine": "sglang", "accepted_tokens": 60},
    ),
    ("more_steps_than_tokens", {"verify_steps": 104}, {"verify_steps": 103}),
    ("positions_rise", {"accepted_by_position": [10, 20, 30]}, {"accepted_by_position": [20, 20, 20]}),
    ("positions_above_steps", {"verify_steps": 29}, {"verify_steps": 30}),
    ("positions_contradict_accepted", {"accepted_by_position": [30, 20]}, {"accepted_by_position": [30, 20, 10, 0]}),
    ("transfer_above_link", {"kv_transfer_bytes": 5_000_000_001}, {"kv_transfer_bytes": 5_000_000_000}),
    ("e2e_below_ttft", {"e2e_s": 3.5, "ttft_s": 3.6}, {"ttft_s": 3.51}),
    ("queue_s_above_e2e", {"queue_s": 3.6}, {"queue_s": 3.5}),
    ("prefill_s_above_e2e", {"prefill_s": 3.6}, {"prefill_s": 3.5}),
    ("decode_s_above_e2e", {"decode_s": 3.6, "tpot_s": 0.036}, {"decode_s": 3.5, "tpot_s": 0.035}),
    ("chunk_gap_max_s_above_e2e", {"chunk_gap_max_s": 3.6}, {"chunk_gap_max_s": 3.5}),
    ("stall_s_above_e2e", {"stall_s": 3.6}, {"stall_s": 3.5}),
    ("chunk_gaps_unordered", {"chunk_gap_p50_s": 0.2, "chunk_gap_p95_s": 0.1}, {"chunk_gap_p50_s": 0.1, "chunk_gap_p95_s": 0.1}),
    ("tpot_of_one_token", {"output_tokens": 1, "verify_steps": None}, {"output_tokens": 1, "verify_steps": None, "tpot_s": None}),
    ("tpot_is_a_step", {"tpot_s": 0.075}, {"tpot_s": 0.0301}),
    ("tpot_with_first_token", {"tpot_s": 3.5 / 101}, {"tpot_s": 3.0 / 100}),
    ("tpot_over_all_tokens", {"output_tokens": 11, "tpot_s": 3.0 / 11, "verify_steps": 10, "accepted_by_position": None}, {}),
    ("tpot_contradicts", {"tpot_s": 0.04}, {"tpot_s": 0.032}),
    ("kv_usage_above_one", {"kv_usage": 50.0}, {"kv_usage": 1.0}),
    ("communication_above_one", {"communication_fraction": 1.1}, {"communication_fraction": 1.0}),
    ("ttft_s_minus_one", {"ttft_s": -1.0}, {"ttft_s": 0.0}),
    ("queue_s_negative", {"queue_s": -0.001}, {"queue_s": 0.0}),
    ("tpot_s_negative", {"tpot_s": -0.03}, {}),
    ("gpu_s_beyond", {"gpu_s": 1e10}, {"gpu_s": 100.0}),
]  # fmt: skip


def fell(row: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """A request as it comes out, and the names of the traps that it fell into."""
    (found,) = quarantined(requests([USUAL | row]))[0].to_dicts()
    return found, {flag.removeprefix("trap:") for flag in found["flags"] if flag.startswith("trap:")}


@pytest.mark.parametrize(("name", "past", "short"), CASES, ids=[case[0] for case in CASES])
def test_a_value_is_caught_just_past_its_bound_and_stays_just_short_of_it(name: str, past: dict[str, Any], short: dict[str, Any]) -> None:
    trap = next(trap for trap in TRAPS if trap.name == name)
    row, traps = fell(past)
    assert name in traps
    if trap.severity == "quarantined":
        assert [row[column] for column in trap.columns] == [None] * len(trap.columns)
        assert not set(row["provenance"]) & set(trap.columns)
    else:
        assert "suspect" in row["flags"]
    assert name not in fell(short)[1]


def test_every_row_has_a_case() -> None:
    of_bodies = {"body_contradicts_prompt", "body_contradicts_output"}  # see test_pipeline_guard_legs.py
    assert {trap.name for trap in REQUEST_TRAPS} <= {name for name, _, _ in CASES} | of_bodies


def test_what_is_usual_falls_into_nothing() -> None:
    assert fell({}) == (requests([USUAL]).to_dicts()[0], set())


@pytest.mark.parametrize("column", ["cached_tokens", "prompt_tokens"])
def test_the_bucket_of_a_value_that_was_set_aside_goes_with_it(column: str) -> None:
    bucket = BUCKETS[column]
    rows = requests([USUAL | {column: -5, bucket: "x"}, USUAL | {bucket: "x"}])
    assert quarantined(rows)[0][bucket].to_list() == [None, "x"]


def test_a_list_is_told_as_it_came() -> None:
    taken = quarantined(requests([USUAL | {"accepted_by_position": [10, 20, 30]}]))[1]
    assert taken.select("column", "value", "trap").rows() == [("accepted_by_position", "[10, 20, 30]", "positions_rise")]


NUMBERS = [name for name, kind in schema("requests_hot").items() if kind in (pl.Int64, pl.Float64)]
ODD = st.one_of(st.none(), st.integers(-2, 5000), st.sampled_from([2**62, -(2**62)]), st.floats(allow_nan=True, allow_infinity=True))


@given(st.dictionaries(st.sampled_from(NUMBERS), ODD, max_size=20), st.sampled_from(["vllm", "sglang", None]))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_what_comes_out_falls_into_no_trap_again_and_every_value_taken_is_told_once(said: dict[str, Any], engine: str | None) -> None:
    """Whatever a sender makes up: the guard is idempotent, and a value is there or in quarantine, never in both nor in neither."""
    whole = {name for name, kind in schema("requests_hot").items() if kind == pl.Int64}
    row = {name: int(value) if name in whole and isinstance(value, float) and abs(value) < 1e15 else value for name, value in said.items()}
    row = {name: value for name, value in row.items() if not (name in whole and isinstance(value, float))}
    before = requests([row | {"engine": engine}])
    once = checked(before, samples([]))
    again = checked(once.requests, samples([]))
    assert again.quarantine.is_empty()
    assert again.requests.equals(once.requests, null_equal=True)
    gone = [name for name in NUMBERS if before[name][0] is not None and once.requests[name][0] is None]
    assert sorted(once.quarantine["column"].to_list()) == sorted(gone)
