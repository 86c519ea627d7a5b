"""What workers of a split tell, read: prompts that were read where they are answered, pairs, and halves of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from demo_dispatches import rows
from demo_told import deployment, exported, moved, request
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from demo.engines import response_tap, sglang, vllm
from demo.records import Request

ENGINES = {"vllm": vllm.Emitter, "sglang": sglang.Emitter}


def local(engine: str, number: int, **fields: Any) -> Request:
    """A request whose prompt a decode worker reads itself."""
    return request(deployment(engine, "d-0", "decode"), number, **({"prefill_s": 0.2, "ttft_s": 0.254, "e2e_s": 2.255} | fields))


def without(replica: str, body: bytes) -> bytes:
    """An export without what a replica sent."""
    export = ExportTraceServiceRequest.FromString(body)
    kept = [
        one
        for one in export.resource_spans
        if replica not in {key.value.string_value for key in one.resource.attributes if key.key == "service.instance.id"}
    ]
    return ExportTraceServiceRequest(resource_spans=kept).SerializeToString()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_prompt_that_a_decode_worker_read_is_whole_and_so_is_a_pair(tmp_path: Path, engine: str) -> None:
    served = [*(local(engine, number) for number in range(1, 20)), *(moved(engine, number) for number in range(20, 40))]
    found = rows(tmp_path, traces=exported(served, ENGINES[engine]()))
    assert [(row["replica"], row["prefill_replica"], row["flags"]) for row in found] == [
        *[("d-0", None, [])] * 19,
        *[("d-0", "p-0", [])] * 20,
    ]
    assert [row["prefill_s"] for row in found] == [pytest.approx(0.2)] * 19 + [pytest.approx(0.08)] * 20


@pytest.mark.parametrize("engine", ENGINES)
def test_the_answer_of_a_prompt_that_a_silent_worker_read_is_half_a_pair(tmp_path: Path, engine: str) -> None:
    served = [*(local(engine, number) for number in range(1, 20)), *(moved(engine, number) for number in range(20, 40))]
    found = rows(tmp_path, traces=[without("p-0", body) for body in exported(served, ENGINES[engine]())])
    assert [row["flags"] for row in found] == [*[[]] * 19, *[["partial"]] * 20]


def test_a_prompt_that_took_no_longer_than_a_step_of_vllm_may_be_half_a_pair_and_of_sglang_is_known_to_be_none(tmp_path: Path) -> None:
    for engine, flags in (("vllm", ["partial"]), ("sglang", [])):
        short = local(engine, 1, prefill_s=0.02, ttft_s=0.074, e2e_s=2.075)
        (row,) = rows(tmp_path / engine, traces=exported([short], ENGINES[engine]()))
        assert (row["flags"], row["prefill_s"]) == (flags, pytest.approx(0.02))


def test_steps_that_a_tap_saw_tell_more_than_tokens(tmp_path: Path) -> None:
    """A step takes 20 ms and gives two tokens; four are taken where nobody counts, with drafts."""
    one = local("vllm", 1, prefill_s=0.05, ttft_s=0.104, e2e_s=2.105)
    (row,) = rows(tmp_path / "engine", traces=exported([one], vllm.Emitter()))
    assert row["flags"] == ["partial"]
    (row,) = rows(tmp_path / "tap", traces=exported([one], vllm.Emitter(), response_tap.Emitter()))
    assert (row["flags"], row["verify_steps"]) == ([], 100)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_greedy_request_has_a_temperature_where_the_engine_shows_that_it_left_0_out(tmp_path: Path, engine: str) -> None:
    found = rows(tmp_path, traces=exported([local(engine, 1, temperature=0.0), local(engine, 2)], ENGINES[engine]()))
    told = [(row["temperature"], row["temperature_bucket"], dict(row["provenance"]).get("temperature")) for row in found]
    greedy = (0.0, "<0.3", "derived") if engine == "vllm" else (None, None, None)
    assert told == [greedy, (0.7, "0.3-0.8", "span")]
