"""What a fleet of Dynamo tells, read: one row a request, with the numbers of the request."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from demo_dispatches import requests, rows

from collectors import entry
from collectors.recorded import Body, bodies
from demo.engines import dynamo, dynamo_legs, dynamo_logs
from demo.engines.exports import Exports
from demo.engines.log_exports import LogExports
from demo.records import Request

TEXT_MS = 1e-5
"""Times on a span are text with two digits of a millisecond."""


def told(served: Iterable[Request]) -> list[bytes]:
    emitter = dynamo.Emitter()
    return [body for body, _ in Exports().bodies([span for request in served for span in emitter.spans(request)])]


def logged(served: Iterable[Request]) -> list[bytes]:
    """As the door lets them in."""
    sent = [body for body, _ in LogExports().bodies([record for request in served for record in dynamo_logs.records(request)])]
    assert all(dynamo_logs.PROMPT.encode() in body for body in sent)
    kept = [entry.of_logs(body).body for body in sent]
    assert not any(dynamo_logs.PROMPT.encode() in body for body in kept)
    return kept


def holds_together(row: dict[str, Any], request: Request) -> None:
    """What spans alone say."""
    prefilled_at = request.prefill_at or request.at
    assert (row["engine"], row["outcome"], row["flags"]) == ("dynamo", "ok", [])
    assert (row["prompt_tokens"], row["output_tokens"]) == (request.prompt_tokens, request.output_tokens)
    assert row["ttft_s"] == pytest.approx(request.ttft_s, abs=TEXT_MS)
    assert row["e2e_s"] == pytest.approx(request.e2e_s, abs=1e-6)
    assert row["decode_s"] == pytest.approx(request.decode_s + dynamo_legs.DETOKENIZED_S, abs=TEXT_MS)
    assert row["replica"] == str(dynamo_legs.worker_id(request.at.replica))
    assert row["prefill_replica"] == str(dynamo_legs.worker_id(prefilled_at.replica))
    assert dict(row["arms"]) == dict(request.at.arms)
    assert dict(row["levers"]) == dict(request.at.levers)
    assert (row["hardware"], row["topology"], row["gpus"], row["model"]) == ("h100", request.at.topology, request.at.gpus, "m-8b")


@pytest.mark.parametrize("split", [False, True])
def test_each_request_is_one_row_with_its_numbers_arms_and_workers(tmp_path: Path, split: bool) -> None:
    served = requests("dynamo", split=split)
    found = {row["trace_id"]: row for row in rows(tmp_path, traces=told(served))}
    assert len(found) == len(served) > 100
    for request in served:
        row = found[request.trace_id.hex()]
        holds_together(row, request)
        assert (row["cached_tokens"], row["queue_s"], row["temperature"]) == (None, None, None)


@pytest.mark.parametrize("split", [False, True])
def test_the_request_trace_adds_cached_tokens_waits_and_temperature_to_the_same_row(tmp_path: Path, split: bool) -> None:
    served = requests("dynamo", split=split)
    found = {row["request_id"]: row for row in rows(tmp_path, traces=told(served), logs=logged(served))}
    assert len(found) == len(served)
    assert sum(request.cached_tokens for request in served) > 0
    for request in served:
        row = found[dynamo_legs.request_id(request)]
        holds_together(row, request)
        assert row["trace_id"] == request.trace_id.hex()
        assert row["cached_tokens"] == request.cached_tokens
        assert row["queue_s"] == pytest.approx(request.frontend_s + request.queue_s, abs=1e-6)
        assert row["prefill_s"] == pytest.approx(request.prefill_s, abs=1e-6)
        assert (row["temperature"], row["finish_reason"]) == (request.temperature, request.finish_reason)
        assert row["queue_depth"] == request.queue_depth


def test_the_lines_of_the_file_sink_are_read_without_spans(tmp_path: Path) -> None:
    served = requests("dynamo")
    path = tmp_path / "request_trace.jsonl"
    path.write_text("".join(json.dumps(dynamo_logs.request_trace_line(request)) + "\n" for request in served))
    found = {row["request_id"]: row for row in rows(tmp_path, logs=[one.content for one in bodies(path) if isinstance(one, Body)])}
    assert len(found) == len(served)
    for request in served:
        row = found[dynamo_legs.request_id(request)]
        assert row["flags"] == ["log_only"]
        assert (row["output_tokens"], row["cached_tokens"]) == (request.output_tokens, request.cached_tokens)
        assert row["e2e_s"] == pytest.approx(request.e2e_s)


def test_what_did_not_complete_is_an_aborted_or_failed_row_of_its_own(tmp_path: Path) -> None:
    first, second, third, *_ = requests("dynamo")
    retried = (third._replace(outcome="error"), third._replace(attempt=2, started_ns=third.started_ns + 2_000_000_000))
    served = [first, second._replace(outcome="aborted"), *retried]
    found = {row["request_id"]: row for row in rows(tmp_path, traces=told(served), logs=logged(served))}
    by_attempt = [found[dynamo_legs.request_id(request)] for request in served]
    assert len(found) == 4
    assert [row["outcome"] for row in by_attempt] == ["ok", "aborted", "error", "ok"]
    tokens = [first.output_tokens, second.output_tokens, None, third.output_tokens]
    assert [row["output_tokens"] for row in by_attempt] == tokens
    assert by_attempt[2]["decode_s"] is None


def test_a_request_that_is_told_twice_counts_once(tmp_path: Path) -> None:
    first = requests("dynamo")[0]
    [row] = rows(tmp_path, traces=told([first, first._replace(attempt=101)]))
    assert (row["prompt_tokens"], row["output_tokens"]) == (first.prompt_tokens, first.output_tokens)
