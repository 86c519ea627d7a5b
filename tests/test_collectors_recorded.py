"""A recorded file is told by its content: trace exports come out, the rest is named with the reason."""

from __future__ import annotations

import gzip
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

from collectors import entry, imported, meanings, otlp_logs
from collectors.otlp_metrics import points
from collectors.recorded import Body, bodies
from collectors.recorded_kinds import KINDS, NotLoadedError
from collectors.samples import Sample


def written(folder: Path, content: bytes | str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def told(path: Path, kind: str = "") -> tuple[list[Body], list[NotLoadedError]]:
    items = list(bodies(path, kind))
    return [item for item in items if isinstance(item, Body)], [item for item in items if isinstance(item, NotLoadedError)]


def found(path: Path) -> tuple[list[bytes], list[NotLoadedError]]:
    items, problems = told(path)
    assert {item.signal for item in items} <= {"traces"}
    return [item.content for item in items], problems


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
def test_metrics_and_logs_come_out_under_their_signal(tmp_path: Path, content: bytes | str, kind: str) -> None:
    wanted = metrics() if kind == "metrics" else logs()
    items, problems = told(written(tmp_path, content))
    assert ([(item.signal, item.content) for item in items], problems) == ([(kind, wanted.SerializeToString())], [])


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_export_comes_out_as_protobuf(tmp_path: Path, indent: int | None) -> None:
    loaded, problems = found(written(tmp_path, json.dumps(as_json(1, 2), indent=indent)))
    assert (parsed(loaded), problems) == ([request(span(1), span(2))], [])


def test_a_list_of_json_exports_comes_out_one_by_one(tmp_path: Path) -> None:
    loaded, problems = found(written(tmp_path, json.dumps([as_json(1), as_json(2), 5])))
    assert parsed(loaded) == [request(span(1)), request(span(2))]
    assert ["a JSON object of a kind that is known is taken, not a number" in str(problem) for problem in problems] == [True]


def test_the_lines_of_a_collector_come_out_around_those_that_are_broken(tmp_path: Path) -> None:
    lines = [as_json(1), {"resourceMetrics": []}, None, as_json(2), {"other": 1, "more": 2}, 7]
    text = "\n".join(json.dumps(line) if line is not None else '{"resourceSpans": [{"sco' for line in lines) + "\n\n"
    path = written(tmp_path, text)
    items = list(bodies(path))
    exports = [item.content for item in items if isinstance(item, Body) and item.signal == "traces"]
    assert parsed(exports) == [request(span(1)), request(span(2))]
    assert [getattr(item, "signal", None) for item in items] == ["traces", "metrics", None, "traces", None, None]
    problems = [str(item).removeprefix(f"{path}:") for item in items if isinstance(item, NotLoadedError)]
    assert problems[0].startswith("3: not JSON: ")
    assert problems[1].startswith("5: of no known kind; keys: other, more; known kinds: otlp-traces, ")
    assert problems[2] == "6: a JSON object of a kind that is known is taken, not a number"


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
    assert [str(problem) for problem in problems] == [f"{path}: neither a protobuf export nor JSON that is known ({len(content)} bytes)"]


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(bodies(tmp_path / "missing"))


def test_every_recorded_file_is_told_as_what_its_folder_says(recordings: Path) -> None:
    kinds = {"traces": 0, "metrics": 0, "logs": 0}
    for path in sorted(recordings.glob("*/*/*.pb")):
        kinds[path.parent.name] += 1
        assert told(path) == ([Body(path.parent.name, path.read_bytes())], [])
    assert min(kinds.values()) > 5


def ended(number: int) -> dict[str, Any]:
    request = {"request_id": f"r-{number}", "request_received_ms": 1_700_000_000_000, "total_time_ms": 5, "output_tokens": number}
    return {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": request}


def payload(number: int) -> dict[str, Any]:
    inner = {"request_id": f"r-{number}", "model": "m", "request": {"messages": "a secret", "temperature": 0.5}}
    return {"schema": "dynamo.request.trace.v1", "event_type": "request_payload", "payload": inner}


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_request_trace_comes_out_as_logs_without_a_prompt(tmp_path: Path, is_packed: bool) -> None:
    lines = [{"timestamp": 1, "event": payload(1)}, {"timestamp": 2, "event": ended(1)}, ended(2), {"timestamp": 3, "event": {"schema": 1}}]
    text = "\n".join(json.dumps(line) for line in lines).encode()
    items, problems = told(written(tmp_path, gzip.compress(text) if is_packed else text))
    assert ([item.signal for item in items], b"secret" in items[0].content) == (["logs"], False)
    kept = entry.of_logs(items[0].content)
    assert (kept.items, kept.dropped.total()) == (2, 1)
    said = otlp_logs.read(ExportLogsServiceRequest.FromString(kept.body), START)
    first = said.spans.resource_spans[0].scope_spans[0].spans[0]
    assert {one.key: one.value.string_value for one in first.attributes if one.key in ("model", "temperature")} == {
        "model": "m",
        "temperature": "0.5",
    }
    assert [str(problem).split("; keys")[0].rpartition(":")[2] for problem in problems] == [" of no known kind"]


def test_the_recorded_request_trace_file_says_the_same_requests_as_its_logs(recordings: Path) -> None:
    items, problems = told(recordings / "dynamo-reqtrace" / "request_trace.jsonl")
    assert problems == []
    counts = [entry.of_logs(item.content) for item in items]
    assert (sum(count.items for count in counts), sum(count.dropped.total() for count in counts)) == (12, 12)
    from_file = {span.span_id for item in counts for span in spans_of(item.body)}
    logged = [entry.of_logs(path.read_bytes()).body for path in sorted((recordings / "dynamo-reqtrace" / "logs").glob("*.pb"))]
    assert from_file == {span.span_id for content in logged for span in spans_of(content)}


def spans_of(content: bytes) -> list[Any]:
    said = otlp_logs.read(ExportLogsServiceRequest.FromString(content), START).spans
    return [one for resource in said.resource_spans for scope in resource.scope_spans for one in scope.spans]


def perf(last_time: float, **fields: Any) -> dict[str, Any]:
    timing = {"arrival_time": last_time - 1.0, "first_scheduled_time": last_time - 0.75, "first_token_time": last_time - 0.5}
    timing |= {"last_token_time": last_time, "kv_cache_size": 4096}
    timing |= {"kv_cache_transfer_start": last_time - 0.5, "kv_cache_transfer_end": last_time - 0.25}
    drafts = {"acceptance_rate": 0.5, "total_accepted_draft_tokens": 4, "total_draft_tokens": 8}
    return {"request_id": 7, "perf_metrics": {"timing_metrics": timing, "speculative_decoding": drafts, "first_iter": 3}} | fields


def test_perf_metrics_come_out_as_spans_that_end_when_the_file_does(tmp_path: Path) -> None:
    pair = {"ctx_server": "a:1", "gen_server": "b:1", "ctx_perf_metrics": perf(99.0), "gen_perf_metrics": perf(100.0)}
    path = written(tmp_path, json.dumps([perf(98.0), pair, {"perf_metrics": {}}]))
    items, problems = told(path)
    assert [str(problem) for problem in problems] == [f"{path}: record 3: perf_metrics.timing_metrics is missing"]
    made = parsed([item.content for item in items])[0]
    spans = [scope.spans[0] for resource in made.resource_spans for scope in resource.scope_spans]
    assert [one.name for one in spans] == ["perf_metrics", "perf_metrics prefill", "perf_metrics decode"]
    assert (spans[1].trace_id, spans[2].end_time_unix_nano) == (spans[2].trace_id, path.stat().st_mtime_ns)
    assert spans[2].end_time_unix_nano - spans[0].end_time_unix_nano == 2_000_000_000
    numbers = {one.key: one.value.double_value for one in spans[0].attributes if one.value.HasField("double_value")}
    assert numbers == {
        "queue_s": 0.25, "prefill_s": 0.25, "ttft_s": 0.5, "decode_s": 0.5, "e2e_s": 1.0, "kv_transfer_s": 0.25,
        "total_accepted_draft_tokens": 4, "total_draft_tokens": 8, "first_iter": 3, "kv_cache_size": 4096,
    }  # fmt: skip
    assert [resource.resource.attributes[0].value.string_value for resource in made.resource_spans if resource.resource.attributes] == [
        "a:1",
        "b:1",
    ]
    assert told(path)[0] == items


def collective(serial: int, **fields: Any) -> dict[str, Any]:
    said = {"coll": "AllReduce", "coll_sn": serial, "coll_msg_size_bytes": 17179869184, "coll_exec_time_us": 61974}
    said |= {"coll_algobw_gbs": 277.210914, "coll_busbw_gbs": 485.119099}
    header = {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1}
    return {
        "header": header,
        "metadata": {"dump_timestamp_us": 1748030377748202, "hostname": "node-1", "pid": 1},
        "coll_perf": said,
    } | fields


def test_the_nccl_inspectors_lines_come_out_as_samples_of_its_host(tmp_path: Path) -> None:
    lines = [collective(1), collective(2, metadata={}), collective(3)]
    path = written(tmp_path, "\n".join(json.dumps(line) for line in lines))
    items, problems = told(path)
    assert [str(problem) for problem in problems] == [f"{path}: record 2: metadata.dump_timestamp_us is missing or no time"]
    kept = list(points(ExportMetricsServiceRequest.FromString(items[0].content), ("host.name",), "load"))
    first = [one for one in kept if isinstance(one, Sample) and one.labels["sn"] == "1"]
    assert {(one.name, one.value, one.replica) for one in first} == {
        ("nccl_collective_exec_time_microseconds", 61974.0, "node-1"),
        ("nccl_collective_message_size_bytes", 17179869184.0, "node-1"),
        ("nccl_algorithm_bandwidth_gbs", 277.210914, "node-1"),
        ("nccl_bus_bandwidth_gbs", 485.119099, "node-1"),
    }
    given = {one.signal: (one.sample.value or 0) * one.factor for one in meanings.shipped().given(first)}
    assert (given["collective_s"], round(given["collective_bus_bytes_per_s"])) == (pytest.approx(0.061974), 485119099000)
    assert (len(kept), first[0].labels["collective"], first[0].labels["rank"]) == (8, "AllReduce", "2")


def test_response_bodies_come_out_as_spans(tmp_path: Path) -> None:
    body = {"id": "cmpl-1", "model": "m", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    items, problems = told(written(tmp_path, json.dumps(body) + "\n"))
    assert ([item.signal for item in items], problems) == (["traces"], [])


def test_a_kind_that_is_named_is_taken_instead_of_the_content(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(as_json(1)))
    for kind in ("nccl-inspector", "trtllm-perf-metrics", "dynamo-request-trace", "response-bodies"):
        items, problems = told(path, kind)
        assert (items, len(problems)) == ([], 1), kind
    with pytest.raises(NotLoadedError, match=r"--kind 'other' is unknown; known: otlp-traces, "):
        told(path, "other")
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_a_gzip_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"{}" * 1000)[:-10])
    assert [str(problem).startswith(f"{path}: not a whole gzip file") for problem in told(path)[1]] == [True]


def test_requests_go_in_by_their_start_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    starts = [f"2026-11-29T{hour:02}:{minute:02}:00{zone}" for hour in (3, 0, 2) for minute in range(0, 60, 2) for zone in ("Z", "+05:00")]
    rows = [{"request_id": f"r{number}", "started_at": start} for number, start in enumerate(starts * 30)]
    items, problems = told(written(tmp_path, "\n".join(json.dumps(row) for row in rows)))
    sent = [imported.checked(row).started_at for item in items for row in json.loads(item.content)]
    assert (len(items), len(sent), problems) == (3, 5400, [])
    assert sent == sorted(sent)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (
            "a.csv",
            "TIMESTAMP,ContextTokens\n2023-11-16,374\n",
            "names TIMESTAMP, ContextTokens; needed are started_at and request_id",
        ),
        ("a.csv", ",".join("abcdefghij") + "\n1\n", "first line names a, b, c, d, e, f, g, h and 2 more; needed"),
        ("a.prom", "up 1\n", "it is scraped: [[scrape]]"),
        ("a", "# HELP up Whether it is.\n# TYPE up gauge\nup 1\n", "it is scraped: [[scrape]]"),
        ("a", "prose", "neither a protobuf export nor JSON that is known (5 bytes)"),
    ],
)
def test_a_file_that_nothing_reads_is_told_what_it_lacks(tmp_path: Path, name: str, text: str, why: str) -> None:
    items, problems = told(written(tmp_path, text, name))
    assert items == []
    assert why in str(problems[0])


def test_a_mark_of_the_byte_order_hides_no_column(tmp_path: Path) -> None:
    items, problems = told(written(tmp_path, "\ufeffrequest_id,started_at\na,2026-11-29T12:00:00Z\n", "a.csv"))
    assert ([item.signal for item in items], problems) == (["requests"], [])
