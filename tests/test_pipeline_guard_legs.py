"""A span and a response body that count the tokens of one request differently: the value stays, and it is said."""

from __future__ import annotations

from typing import Any

import pytest
from test_pipeline_assemble import rows_of, span, vllm


def flags(*bodies: dict[str, Any], **engine: Any) -> list[str]:
    (row,) = rows_of(vllm(**engine), *bodies)
    assert (row["prompt_tokens"], row["output_tokens"]) == (100, 11)
    return [flag for flag in row["flags"] if flag == "suspect" or flag.startswith("trap:")]


def body(span_id: str = "b", **said: Any) -> dict[str, Any]:
    return span(span_id, "body", "response_tap", "e", join_key="r-1", **said)


@pytest.mark.parametrize(
    ("said", "traps"),
    [
        ({"prompt_tokens": 100, "output_tokens": 11}, []),
        ({"output_tokens": 12}, []),  # the token that ends it is counted, or not
        ({"cached_tokens": 3}, []),
        ({"prompt_tokens": 101}, ["suspect", "trap:body_contradicts_prompt"]),
        ({"output_tokens": 13}, ["suspect", "trap:body_contradicts_output"]),
        ({"prompt_tokens": 1, "output_tokens": 1}, ["suspect", "trap:body_contradicts_prompt", "trap:body_contradicts_output"]),
    ],
)
def test_tokens_of_a_body_are_held_against_those_of_the_span(said: dict[str, Any], traps: list[str]) -> None:
    assert flags(body(**said)) == traps


def test_a_request_that_was_cut_off_has_a_shorter_body_and_that_is_right() -> None:
    assert flags(body(output_tokens=3), finish_reason="abort") == []


def test_of_several_bodies_none_is_held_against_the_span() -> None:
    assert flags(body("b", output_tokens=4), body("d", output_tokens=7)) == []


def test_requests_of_one_span_beside_joined_ones_stay_as_they_are() -> None:
    rows = rows_of(vllm(), body(prompt_tokens=7), vllm("x", trace_id="t9", request_id="r-9", join_key="r-9"))
    assert {row["request_id"]: "suspect" in row["flags"] for row in rows} == {"r-1": True, "r-9": False}
