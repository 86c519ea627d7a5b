"""A recorded file is told by its content: trace exports come out, the rest is named with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from collectors_bodies import START, attribute, body, request, span
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics

from collectors.recorded import NotLoadedError, bodies


def written(folder: Path, content: bytes | str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def found(path: Path) -> tuple[list[bytes], list[NotLoadedError]]:
    items = list(bodies(path))
    return [item for item in items if isinstance(item, bytes)], [item for item in items if isinstance(item, NotLoadedError)]


def as_json(*numbers: int) -> dict[str, Any]:
    """An export as OTLP/JSON writes it: ids in hex."""
    plain: dict[str, Any] = json_format.MessageToDict(request(*(span(number) for number in numbers)))
    for one, number in zip(plain["resourceSpans"][0]["scopeSpans"][0]["spans"], numbers, strict=True):
        one["traceId"], one["spanId"] = f"{number:032x}", f"{number:016x}"
    return plain


def metrics() -> ExportMetricsServiceRequest:
    metric = Metric(name="vllm:num_requests_running", gauge=Gauge(data_points=[NumberDataPoint(time_unix_nano=START, as_int=3)]))
    return ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[metric])])])


def logs() -> ExportLogsServiceRequest:
    record = LogRecord(time_unix_nano=START, attributes=[attribute("event_type", "request_end")])
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[record])])])


def parsed(items: list[bytes]) -> list[ExportTraceServiceRequest]:
    return [ExportTraceServiceRequest.FromString(item) for item in items]


@pytest.mark.parametrize("name", ["00001.grpc.pb", "traces.json", "no-ending"])
def test_a_protobuf_export_comes_out_as_it_is_whatever_its_file_is_called(tmp_path: Path, name: str) -> None:
    assert found(written(tmp_path, body(span(1), span(2)), name)) == ([body(span(1), span(2))], [])


@pytest.mark.parametrize("first_byte", [b"{", b"["])
def test_an_export_that_begins_like_json_is_still_protobuf(tmp_path: Path, first_byte: bytes) -> None:
    """A first message of 123 or 91 bytes has `{` or `[` for its length, behind a tag that is a newline."""
    for padding in range(100):
        small = body(span(1, attributes=[], name="x" * padding), scope="")
        if small[:2] == b"\n" + first_byte:
            assert found(written(tmp_path, small)) == ([small], [])
            return
    pytest.fail("no export of that length")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (metrics().SerializeToString(), "metrics"),
        (logs().SerializeToString(), "logs"),
        (json_format.MessageToJson(metrics()), "metrics"),
        (json_format.MessageToJson(logs(), preserving_proto_field_name=True), "logs"),
    ],
)
def test_another_signal_is_told_apart_and_known(tmp_path: Path, content: bytes | str, kind: str) -> None:
    path = written(tmp_path, content)
    loaded, problems = found(path)
    assert (loaded, [str(problem) for problem in problems]) == ([], [f"{path}: an export of {kind}; only traces are read so far"])
    assert problems[0].is_known


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_export_comes_out_as_protobuf(tmp_path: Path, indent: int | None) -> None:
    loaded, problems = found(written(tmp_path, json.dumps(as_json(1, 2), indent=indent)))
    assert (parsed(loaded), problems) == ([request(span(1), span(2))], [])


def test_a_list_of_json_exports_comes_out_one_by_one(tmp_path: Path) -> None:
    loaded, problems = found(written(tmp_path, json.dumps([as_json(1), as_json(2), 5])))
    assert parsed(loaded) == [request(span(1)), request(span(2))]
    assert ["a JSON object with resourceSpans is taken, not int" in str(problem) for problem in problems] == [True]


def test_the_lines_of_a_collector_come_out_around_those_that_are_broken(tmp_path: Path) -> None:
    lines = [as_json(1), {"resourceMetrics": []}, None, as_json(2), {"other": 1, "more": 2}, 7]
    text = "\n".join(json.dumps(line) if line is not None else '{"resourceSpans": [{"sco' for line in lines) + "\n\n"
    path = written(tmp_path, text)
    items = list(bodies(path))
    assert parsed([item for item in items if isinstance(item, bytes)]) == [request(span(1)), request(span(2))]
    assert [isinstance(item, bytes) for item in items] == [True, False, False, True, False, False]
    problems = [item for item in items if isinstance(item, NotLoadedError)]
    assert [problem.is_known for problem in problems] == [True, False, False, False]
    told = [str(problem).removeprefix(f"{path}:") for problem in problems]
    assert told[0] == "2: an export of metrics; only traces are read so far"
    assert told[1].startswith("3: not JSON: ")
    assert told[2] == "5: no resourceSpans in it; keys: other, more"
    assert told[3] == "6: a JSON object with resourceSpans is taken, not int"


def test_a_line_with_an_id_that_is_no_hex_is_named_and_the_others_come_out(tmp_path: Path) -> None:
    broken = as_json(1)
    broken["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "not hex"
    path = written(tmp_path, json.dumps(broken) + "\r\n" + json.dumps(as_json(2)))
    loaded, problems = found(path)
    assert parsed(loaded) == [request(span(2))]
    assert str(problems[0]).startswith(f"{path}:1: traceId 'not hex': hex digits are taken")


@pytest.mark.parametrize("broken", ["[" * 100_000, '{"resourceSpans": ' + "1" * 5000 + "}", "\ud800"])
def test_a_line_that_no_reader_of_json_survives_is_named(tmp_path: Path, broken: str) -> None:
    path = written(tmp_path, (json.dumps(as_json(1)) + "\n" + broken + "\n").encode(errors="surrogatepass"))
    loaded, problems = found(path)
    assert parsed(loaded) == [request(span(1))]
    assert [str(problem).startswith(f"{path}:2: not JSON: ") for problem in problems] == [True]


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 50, b"plain text", bytes(range(256)), body(span(1))[:-3], body(), body(span(1, span_id=b"x"))]
)
def test_garbage_is_named_and_not_known(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    loaded, problems = found(path)
    assert loaded == []
    assert [str(problem) for problem in problems] == [f"{path}: neither a protobuf trace export nor OTLP/JSON ({len(content)} bytes)"]
    assert not problems[0].is_known


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(bodies(tmp_path / "missing"))


def test_every_recorded_file_is_told_as_what_its_folder_says(recordings: Path) -> None:
    kinds = {"traces": 0, "metrics": 0, "logs": 0}
    for path in sorted(recordings.glob("*/*/*.pb")):
        loaded, problems = found(path)
        kind = path.parent.name
        kinds[kind] += 1
        if kind == "traces":
            assert (loaded, problems) == ([path.read_bytes()], [])
        else:
            assert [str(problem) for problem in problems] == [f"{path}: an export of {kind}; only traces are read so far"]
    assert min(kinds.values()) > 5
