"""One leg of a decode worker: half a pair, or a prompt that the worker read itself."""

from __future__ import annotations

from typing import Any

import pytest
from test_pipeline_assemble import rows_of, span, vllm


def stage(name: str, parent: str, **said: Any) -> dict[str, Any]:
    return span(name, "stage", "sglang", parent, pool="decode", **said)


DRAFTS = [{"key": "speculation", "value": "mtp-1"}]
LOCAL = {
    "sglang, with a stage that read": [vllm(pool="decode") | {"dialect": "sglang"}, stage("s", "e", prefill_s=0.02)],
    "vllm, long until its first token": [vllm(pool="decode", prefill_s=0.21)],
    "vllm, of a tap that knows its steps": [vllm(pool="decode", prefill_s=0.41), span("b", "body", "tap", join_key="r-1", verify_steps=5)],
    "vllm, long for a step with drafts": [vllm(pool="decode", prefill_s=0.81, levers=DRAFTS)],
}


@pytest.mark.parametrize("spans", LOCAL.values(), ids=LOCAL)
def test_a_prompt_that_a_decode_worker_reads_itself_is_whole(spans: list[dict[str, Any]]) -> None:
    (row,) = rows_of(*spans)
    assert row["flags"] == []
    assert (row["replica"], row["prefill_replica"], row["decode_replica"]) == ("r1", None, "r1")


HALVES = {
    "vllm, a step until its first token": [vllm(pool="decode", prefill_s=0.19)],
    "vllm, a step of several tokens": [vllm(pool="decode", prefill_s=0.39), span("b", "body", "tap", join_key="r-1", verify_steps=5)],
    "vllm, a step with drafts": [vllm(pool="decode", prefill_s=0.79, levers=DRAFTS)],
    "vllm, without another token to hold it against": [vllm(pool="decode", prefill_s=0.9, output_tokens=1, decode_s=0.0)],
    "of its own word": [vllm(phase="decode", prefill_s=0.45)],
    "of a gateway that names who read": [
        span("g", "gateway", "llm-d", prefill_replica="p"),
        vllm(parent="g", pool="decode", prefill_s=0.45),
    ],
    "sglang, of its own word, with a stage": [vllm(phase="decode"), stage("s", "e", prefill_s=0.02)],
    "read, and not answered": [vllm(pool="prefill", prefill_s=0.45)],
}


@pytest.mark.parametrize("spans", HALVES.values(), ids=HALVES)
def test_half_a_pair_is_partial(spans: list[dict[str, Any]]) -> None:
    (row,) = rows_of(*spans)
    assert "partial" in row["flags"]
