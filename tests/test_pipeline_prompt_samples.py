"""Samples of a prompt, and prompts of a call, that an engine tells as requests of their own are one request."""

from __future__ import annotations

import pytest
from test_pipeline_assemble import rows_of, span, vllm

CLIENT = span("c", "client", "genai", for_s=9.0)
"""The caller, whose context the engine's spans have."""


def sample(span_id: str, **said: object) -> dict[str, object]:
    """A span of vLLM for a sample: it says n = 1, whatever was asked."""
    return vllm(span_id, "c", **({"samples_n": 1} | said))


def test_samples_that_each_say_to_be_alone_are_summed_and_their_prompt_counts_once() -> None:
    (row,) = rows_of(CLIENT, sample("a", for_s=1.0, output_tokens=8), sample("b", for_s=1.001, output_tokens=9))
    assert (row["prompt_tokens"], row["output_tokens"], row["samples_n"], row["flags"]) == (100, 17, 2, ["multi_sample"])


def test_samples_need_no_span_of_their_caller() -> None:
    (row,) = rows_of(sample("a", for_s=1.0), sample("b", for_s=1.001), sample("d", for_s=1.002))
    assert (row["prompt_tokens"], row["output_tokens"], row["samples_n"], row["flags"]) == (100, 33, 3, ["multi_sample"])


def test_samples_of_one_token_each_are_no_prefill_and_decode() -> None:
    (row,) = rows_of(CLIENT, *(sample(name, for_s=0.02 + place / 1000, output_tokens=1) for place, name in enumerate("ab")))
    assert (row["output_tokens"], row["flags"], row["prefill_replica"]) == (2, ["multi_sample"], None)


@pytest.mark.parametrize(
    ("said", "flag"),
    [({"at_s": 0.000001}, "duplicate_leg"), ({"replica": "r2"}, "duplicate_leg"), ({"at_s": 3.0}, "retried"), ({}, "duplicate_leg")],
)
def test_a_leg_of_another_time_or_replica_is_no_sample_nor_is_one_that_ended_alike(said: dict[str, object], flag: str) -> None:
    (row,) = rows_of(CLIENT, sample("a"), sample("b", **said))
    assert (row["output_tokens"], row["samples_n"], row["flags"]) == (11, 1, [flag])


def test_prompts_of_one_call_are_one_request_with_the_tokens_of_all() -> None:
    ids = [{"join_key": f"cmpl-x-{place}", "request_id": f"cmpl-x-{place}"} for place in range(2)]
    (row,) = rows_of(
        CLIENT,
        sample("a", prompt_tokens=100, output_tokens=6, **ids[0]),
        sample("b", at_s=0.001, prompt_tokens=40, output_tokens=7, **ids[1]),
    )
    assert (row["prompt_tokens"], row["output_tokens"], row["samples_n"], row["flags"]) == (140, 13, 2, ["multi_sample"])


def test_samples_of_several_prompts_count_each_prompt_once() -> None:
    legs = [
        sample(f"{place}{turn}", at_s=place / 1000, for_s=1 + turn / 1000, prompt_tokens=100 - place, join_key=f"cmpl-x-{place}")
        for place in range(3)
        for turn in range(2)
    ]
    (row,) = rows_of(CLIENT, *legs)
    assert (row["prompt_tokens"], row["output_tokens"], row["samples_n"]) == (100 + 99 + 98, 66, 6)


def test_a_list_that_was_sent_to_two_replicas_counts_for_the_last_that_answered() -> None:
    ids = [{"join_key": f"cmpl-x-{place}", "request_id": f"cmpl-x-{place}"} for place in range(2)]
    first = [sample(f"a{place}", prompt_tokens=50, **said) for place, said in enumerate(ids)]
    again = [sample(f"b{place}", at_s=4.0, replica="r2", prompt_tokens=50, output_tokens=20, **said) for place, said in enumerate(ids)]
    (row,) = rows_of(CLIENT, *first, *again)
    assert (row["prompt_tokens"], row["output_tokens"], row["replica"]) == (100, 40, "r2")
    assert "retried" in row["flags"]


def test_without_a_caller_the_prompts_of_a_call_are_requests_of_their_own() -> None:
    ids = [f"cmpl-x-{place}" for place in range(2)]
    rows = rows_of(*(vllm(name, samples_n=1, join_key=name, request_id=name) for name in ids))
    assert [row["output_tokens"] for row in rows] == [11, 11]
