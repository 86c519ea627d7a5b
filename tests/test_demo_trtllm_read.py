"""What a fleet of TensorRT-LLM tells, read: one row a request, with the numbers of the request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from demo_dispatches import requests, rows

from collectors.recorded import Body, bodies
from demo.engines import trtllm, trtllm_records
from demo.engines.exports import Exports
from demo.records import Request


def told(served: Iterable[Request]) -> list[bytes]:
    emitter = trtllm.Emitter()
    return [body for body, _ in Exports().bodies([span for request in served for span in emitter.spans(request)])]


def recorded(folder: Path, served: Iterable[Request]) -> list[bytes]:
    path = folder / "perf_metrics.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in map(trtllm_records.record, served) if record))
    return [item.content for item in bodies(path) if isinstance(item, Body)]


@pytest.mark.parametrize("split", [False, True])
def test_each_request_is_one_row_with_its_numbers_arms_and_replicas(tmp_path: Path, split: bool) -> None:
    served = requests("trtllm", split=split)
    found = {row["trace_id"]: row for row in rows(tmp_path, traces=told(served))}
    assert len(found) == len(served) > 100
    for request in served:
        row = found[request.trace_id.hex()]
        assert (row["engine"], row["outcome"], row["flags"]) == ("trtllm", "ok", [])
        assert (row["prompt_tokens"], row["output_tokens"]) == (request.prompt_tokens, request.output_tokens)
        assert row["queue_s"] == pytest.approx(request.queue_s, abs=1e-6)
        assert row["decode_s"] == pytest.approx(request.decode_s, abs=1e-6)
        assert row["temperature"] == request.temperature
        assert row["replica"] == request.at.replica
        assert row["prefill_replica"] == (request.prefill_at.replica if request.prefill_at else None)
        assert dict(row["arms"]) == dict(request.at.arms)
        assert dict(row["levers"]) == dict(request.at.levers)
        assert (row["hardware"], row["topology"], row["model"]) == ("h100", request.at.topology, "m-8b")
        assert row["ttft_s"] == pytest.approx(request.ttft_s - request.frontend_s, abs=1e-6)
        assert row["kv_transfer_s"] == pytest.approx(request.kv_transfer_s, abs=1e-6)


def test_the_records_tell_speculation_and_times(tmp_path: Path) -> None:
    served = requests("trtllm", speculation=True)
    found = rows(tmp_path, traces=recorded(tmp_path, served))
    in_order = sorted(served, key=lambda request: request.started_ns + request.frontend_s * 1e9)
    assert len(found) == len(served)
    assert sum(request.draft_tokens is None for request in served) > 10
    for row, request in zip(found, in_order, strict=True):
        assert (row["draft_tokens"], row["accepted_tokens"]) == (request.draft_tokens, request.accepted_tokens)
        assert row["queue_s"] == pytest.approx(request.queue_s, abs=1e-6)
        assert row["prefill_s"] == pytest.approx(request.prefill_s, abs=1e-6)
        assert row["decode_s"] == pytest.approx(request.decode_s, abs=1e-6)


def test_the_records_of_a_pair_are_one_row_with_the_bytes_that_moved(tmp_path: Path) -> None:
    served = requests("trtllm", split=True)
    found = rows(tmp_path, traces=recorded(tmp_path, served))
    in_order = sorted(served, key=lambda request: request.started_ns + request.frontend_s * 1e9)
    assert len(found) == len(served)
    for row, request in zip(found, in_order, strict=True):
        assert request.prefill_at is not None
        assert (row["replica"], row["prefill_replica"]) == (request.at.replica, request.prefill_at.replica)
        assert row["kv_transfer_s"] == pytest.approx(request.kv_transfer_s, abs=1e-6)
        assert row["kv_transfer_bytes"] == round(request.kv_transfer_bytes or 0)
        assert row["queue_s"] == pytest.approx(request.queue_s, abs=1e-6)
        assert row["decode_s"] == pytest.approx(request.decode_s, abs=1e-6)


def test_a_request_that_did_not_complete_has_no_record() -> None:
    request = requests("trtllm")[0]
    assert trtllm_records.record(request._replace(outcome="aborted")) is None
    assert trtllm_records.record(request._replace(outcome="error")) is None


def test_a_split_request_whose_servers_tell_of_it_twice_counts_once(tmp_path: Path) -> None:
    first = requests("trtllm", split=True)[0]
    [row] = rows(tmp_path, traces=told([first, first._replace(attempt=101)]))
    assert (row["prompt_tokens"], row["output_tokens"]) == (first.prompt_tokens, first.output_tokens)
    assert row["decode_s"] == pytest.approx(first.decode_s, abs=1e-6)
