"""Dynamo's request-trace records are the recorded ones: resource, scope, severity, keys, types, and what their payloads hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from conftest import RECORDINGS
from demo_dispatches import requests, types, values
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from demo.engines import dynamo_logs
from demo.engines.log_exports import LogExports
from demo.records import Request

RECORDING = RECORDINGS / "dynamo-reqtrace"


@pytest.fixture(scope="module")
def recording() -> list[ExportLogsServiceRequest]:
    if not RECORDING.is_dir():
        pytest.skip(f"no recording beside the checkout: {RECORDING}")
    return [ExportLogsServiceRequest.FromString(path.read_bytes()) for path in sorted((RECORDING / "logs").glob("*.pb"))]


def emitted(served: Iterable[Request]) -> list[ExportLogsServiceRequest]:
    records = [record for request in served for record in dynamo_logs.records(request)]
    return [ExportLogsServiceRequest.FromString(body) for body, _ in LogExports().bodies(records)]


def kinds(value: Any, depth: int = 3) -> Any:
    """The keys and JSON types of a value, to a depth; of a list those of its first."""
    if isinstance(value, dict) and depth:
        return {key: kinds(inner, depth - 1) for key, inner in value.items() if key not in ("choices", "messages", "stream_options")}
    if isinstance(value, list):
        return [kinds(value[0], depth - 1)] if value else []
    return type(value).__name__


def shapes(exports: Iterable[ExportLogsServiceRequest]) -> list[Any]:
    """All that is fixed about request-trace records, each shape once."""
    found: list[Any] = []
    for export in exports:
        for owner in export.resource_logs:
            for scope in (one for one in owner.scope_logs if one.scope.name == "dynamo.request_trace"):
                for record in scope.log_records:
                    said = values(record.attributes)
                    of_record = record.severity_number, record.severity_text, record.body.string_value, record.trace_id, record.event_name
                    shape = values(owner.resource.attributes), of_record, types(record.attributes), kinds(json.loads(said["payload"]))
                    found += [shape] if shape not in found else []
    return found


def test_the_records_are_of_the_recorded_shape(recording: list[ExportLogsServiceRequest]) -> None:
    ours, real = shapes(emitted(requests("dynamo"))), shapes(recording)
    assert len(real) == 2
    assert [shape for shape in ours if shape not in real] == []
    assert len(ours) == 2


def test_the_line_of_the_file_sink_is_of_the_recorded_shape() -> None:
    if not RECORDING.is_dir():
        pytest.skip(f"no recording beside the checkout: {RECORDING}")
    lines = [json.loads(line) for line in (RECORDING / "request_trace.jsonl").read_text().splitlines()]
    real = next(line for line in lines if line["event"]["event_type"] == "request_end")
    ours = json.loads(json.dumps(dynamo_logs.request_trace_line(requests("dynamo")[0])))
    assert kinds(ours, 4) == kinds(real, 4)


def test_wait_and_prefill_and_the_state_s_way_are_the_time_to_the_first_token() -> None:
    for request in requests("dynamo", split=True):
        said = dynamo_logs.request_trace_line(request)["event"]["request"]
        parts = said["prefill_wait_time_ms"] + said["prefill_time_ms"] + said["kv_transfer_estimated_latency_ms"]
        assert parts == pytest.approx(said["ttft_ms"])
        assert said["total_time_ms"] == request.e2e_s * 1e3
        assert len(said["replay"]["input_sequence_hashes"]) * 64 >= request.prompt_tokens


def test_the_records_of_a_request_are_never_torn_apart() -> None:
    for export in emitted(requests("dynamo", rate=12.0)):
        rids = [values(record.attributes)["rid"] for record in export.resource_logs[0].scope_logs[0].log_records]
        assert all(rids.count(rid) == 2 for rid in set(rids))


def test_of_a_failed_request_neither_answer_nor_times_are_told_and_of_an_aborted_one_what_came() -> None:
    request = requests("dynamo")[0]
    failed = dynamo_logs.request_trace_line(request._replace(outcome="error"))["event"]["request"]
    assert not {"output_tokens", "cached_tokens", "ttft_ms", "avg_itl_ms"} & failed.keys()
    aborted = dynamo_logs.request_trace_line(request._replace(outcome="aborted"))["event"]["request"]
    assert aborted["output_tokens"] == request.output_tokens
