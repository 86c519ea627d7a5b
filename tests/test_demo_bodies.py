"""The answers of vLLM and SGLang have what the engines put there: the keys of the hand-made shapes, with the request's numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from demo_told import deployment, moved, plain, request

from demo.engines import sglang_body, vllm_body

HAND_MADE = Path(__file__).parents[1] / "../shared/data/span_shapes.json"


def hand_made(name: str) -> dict[str, Any]:
    if not HAND_MADE.is_file():
        pytest.skip(f"no shapes beside the checkout: {HAND_MADE}")
    found: dict[str, Any] = next(shape for shape in json.loads(HAND_MADE.read_text())["shapes"] if shape["id"] == name)
    return found


def test_vllm_s_usage_and_metrics_have_the_keys_of_the_shape() -> None:
    real = hand_made("vllm-0.33-unified-specdecode")["response_body"]
    body = vllm_body.answer(request(deployment("vllm")))
    assert body["usage"].keys() == real["usage"].keys()
    assert body["usage"]["prompt_tokens_details"].keys() == real["usage"]["prompt_tokens_details"].keys()
    assert body["metrics"].keys() == real["metrics"].keys()
    assert body["metrics"]["speculative_decoding"].keys() == real["metrics"]["speculative_decoding"].keys()


def test_vllm_s_metrics_are_the_request_s_in_milliseconds() -> None:
    metrics = vllm_body.answer(request(deployment("vllm")))["metrics"]
    assert metrics["time_to_first_token_ms"] == pytest.approx(80)  # without the queue
    assert metrics["queue_time_ms"] == pytest.approx(50)
    assert metrics["generation_time_ms"] == pytest.approx(2000)
    assert metrics["mean_itl_ms"] == pytest.approx(10)
    spec = metrics["speculative_decoding"]
    assert (spec["mean_acceptance_length"], spec["draft_acceptance_rate"]) == (2.0, 0.25)
    assert spec["acceptance_histogram"] == [50, 20, 15, 10, 5]
    assert sum(count * steps for count, steps in enumerate(spec["acceptance_histogram"])) == 100


def test_a_cache_that_had_nothing_is_said_as_zero_and_drafts_that_never_were_as_nothing() -> None:
    one = plain(request(deployment("vllm"), cached_tokens=0))
    body = vllm_body.answer(one)
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert body["metrics"]["speculative_decoding"] is None
    assert vllm_body.answer(one._replace(output_tokens=1))["metrics"]["mean_itl_ms"] is None


def test_sglang_s_meta_info_has_the_keys_of_the_shape_and_none_of_drafts_without_a_verify_step() -> None:
    real = hand_made("sglang-0.5.23-unified-spec-metainfo")["meta_info"]
    worker = deployment("sglang")
    meta, without = (sglang_body.answer(one)["meta_info"] for one in (request(worker), plain(request(worker))))
    assert real.keys() <= meta.keys()
    assert meta.keys() - without.keys() == {key for key in real if key.startswith("spec_")}


def test_sglang_s_numbers_are_the_request_s_in_seconds() -> None:
    meta = sglang_body.answer(request(deployment("sglang"), preemptions=1))["meta_info"]
    assert (meta["prompt_tokens"], meta["completion_tokens"], meta["cached_tokens"], meta["num_retractions"]) == (1200, 201, 800, 1)
    assert (meta["queue_time"], meta["first_token_latency"], meta["decode_throughput"]) == (0.05, 0.134, pytest.approx(100))
    assert meta["spec_accept_length"] == 2.01  # the prefill's token is counted too
    assert (meta["spec_accept_rate"], meta["spec_num_proposed_drafts"], meta["spec_verify_ct"]) == (0.25, 400, 100)


@pytest.mark.parametrize(("engine", "answer"), [("vllm", vllm_body.answer), ("sglang", sglang_body.answer)])
def test_every_body_is_json_and_that_of_an_aborted_request_is_empty(engine: str, answer: Any) -> None:
    for one in (request(deployment(engine)), moved(engine), request(deployment(engine), outcome="error")):
        assert json.loads(json.dumps(answer(one))) == answer(one) != {}
    assert answer(request(deployment(engine), outcome="aborted")) == {}
