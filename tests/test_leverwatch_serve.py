"""A whole server as a process: real exporters in front, killed, started again, stopped."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

SEEN_S = 10.0
PATIENCE_S = 90.0  # the very first start on a machine compiles the decoder


class Running:
    """A server process and its addresses."""

    def __init__(self, folder: Path, *more: str) -> None:
        command = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(folder), "--format", "json", *more]
        command += ["--port", "0", "--grpc-port", "0", "--otlp-http-port", "0"]
        self.folder = folder
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.addresses = json.loads(line)

    def sql(self, sql: str) -> list[list[Any]]:
        answer = httpx.post(f"{self.addresses['url']}/api/sql", json={"sql": sql}, timeout=30)
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["rows"]
        return rows

    def wait_for(self, sql: str, expected: list[list[Any]], patience_s: float = PATIENCE_S) -> float:
        """Asks until the answer is as expected; gives how long it took."""
        started = time.monotonic()
        found = self.sql(sql)
        while found != expected and time.monotonic() - started < patience_s:
            time.sleep(0.1)
            found = self.sql(sql)
        assert found == expected
        return time.monotonic() - started

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def server(folder: Path) -> Iterator[Running]:
    running = Running(folder)
    yield running
    if running.process.poll() is None:
        running.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that tests leave as it is: to start and stop one takes six seconds of processor."""
    running = Running(tmp_path_factory.mktemp("shared") / "data")
    yield running
    running.end()


class Acknowledged(SpanExporter):
    """An exporter that remembers what the real one was told."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.exporter, self.results = exporter, []

    def export(self, spans: Any) -> SpanExportResult:
        result = self.exporter.export(spans)
        self.results.append(result)
        return result

    def shutdown(self) -> None:
        self.exporter.shutdown()


def send_vllm_span(exporter: SpanExporter, request_id: str) -> None:
    """One request's span as vLLM sends it, by the real SDK; asserts that it was acknowledged."""
    acknowledged = Acknowledged(exporter)
    provider = TracerProvider(resource=Resource.create({"service.name": "vllm", "leverwatch.model": "tiny", "leverwatch.hardware": "cpu"}))
    provider.add_span_processor(SimpleSpanProcessor(acknowledged))
    tracer = provider.get_tracer("vllm.tracing.otel")
    with tracer.start_as_current_span("llm_request", kind=SpanKind.SERVER) as span:
        span.set_attribute("gen_ai.request.id", request_id)
        span.set_attribute("gen_ai.usage.prompt_tokens", 582)
        span.set_attribute("gen_ai.usage.completion_tokens", 4)
        span.set_attribute("gen_ai.latency.time_to_first_token", 0.25)
        span.set_attribute("gen_ai.latency.e2e", 0.31)
        span.set_attribute("gen_ai.latency.time_in_model_decode", 0.06)
    provider.shutdown()
    assert acknowledged.results == [SpanExportResult.SUCCESS]


def exporters(running: Running) -> dict[str, SpanExporter]:
    at = running.addresses
    return {
        "grpc": GrpcExporter(endpoint=at["otlp_grpc"], insecure=True),
        "http": HttpExporter(endpoint=f"{at['otlp_http']}/v1/traces"),
        "gzip": HttpExporter(endpoint=f"{at['otlp_http']}/v1/traces", compression=Compression.Gzip),
    }


def test_a_real_exporters_span_is_a_request_within_ten_seconds_and_survives_a_kill_once(folder: Path, server: Running) -> None:
    for name, exporter in exporters(server).items():
        send_vllm_span(exporter, name)
    asked = "select request_id, model, prompt_tokens, output_tokens, round(tpot_s, 6) from requests order by request_id"
    expected = [[name, "tiny", 582, 4, 0.02] for name in ("grpc", "gzip", "http")]
    took_s = server.wait_for(asked, expected)
    assert took_s < SEEN_S

    send_vllm_span(exporters(server)["grpc"], "last words")
    server.end(signal.SIGKILL)
    again = Running(folder)
    again.wait_for("select count(*), count(distinct request_id) from requests", [[4, 4]])
    again.wait_for("select count(*), count(distinct (trace_id, span_id)) from spans", [[4, 4]])
    assert again.end()[0] == 0


def test_otlp_json_with_hex_ids_is_taken(shared: Running) -> None:
    span = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "name": "llm_request",
        "kind": 2,
        "startTimeUnixNano": "1795956574545198566",
        "endTimeUnixNano": "1795956575545198566",
        "attributes": [{"key": "gen_ai.usage.prompt_tokens", "value": {"intValue": "7"}}],
    }
    body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "vllm.tracing.otel"}, "spans": [span]}]}]}
    sent = httpx.post(
        f"{shared.addresses['otlp_http']}/v1/traces",
        content=gzip.compress(json.dumps(body).encode()),
        headers={"content-type": "application/json", "content-encoding": "gzip"},
    )
    assert sent.status_code == 200
    assert sent.json() == {}
    shared.wait_for(
        "select trace_id, prompt_tokens, e2e_s from requests where prompt_tokens = 7", [["5b8efff798038103d269b633813fc60c", 7, 1.0]]
    )


def test_a_folder_is_served_once_and_a_stopped_server_leaves_no_trace(folder: Path, server: Running) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(folder), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode == 2
    assert f"process {server.process.pid}" in second.stderr
    assert len(second.stderr.strip().splitlines()) == 1
    status, errors = server.end()
    assert (status, errors) == (0, "")
    assert not (folder / "serve.json").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["live.duckdb", "parts", "spool"]


def test_what_was_acknowledged_just_before_a_stop_is_assembled_by_the_stop(folder: Path, server: Running) -> None:
    send_vllm_span(exporters(server)["http"], "just before")
    status, _ = server.end()
    assert status == 0
    import leverwatch

    with leverwatch.connect(folder) as connection:
        assert connection.sql("select request_id from requests").rows() == [("just before",)]
        report = connection.report(by=["model"], metrics=["tpot_s"])
        assert report.select("model", "requests", "tpot_s_n").rows() == [("tiny", 1, 1)]


def test_commands_reach_a_running_server_through_its_folder(shared: Running) -> None:
    send_vllm_span(exporters(shared)["grpc"], "one")
    shared.wait_for("select count(*) from requests where model = 'tiny'", [[1]])
    environment = {**os.environ, "LEVERWATCH_DATA": str(shared.folder)}

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "leverwatch.cli.main", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert json.loads(run("sql", "select count(*) as n from requests where model = 'tiny'", "--format", "json"))["rows"] == [[1]]
    asked = (
        "report",
        "--by",
        "model,hardware",
        "--where",
        "model = 'tiny'",
        "--metrics",
        "tpot_s,ttft_s",
        "--since",
        "1h",
        "--format",
        "json",
    )
    report = json.loads(run(*asked))
    assert [(row["model"], row["hardware"], row["requests"]) for row in report] == [("tiny", "cpu", 1)]
    assert report[0]["ttft_s_p95"] == 0.25
    filtered = run("report", "--where", "prompt_tokens > 1000", "--metrics", "tpot_s", "--format", "csv")
    assert filtered.splitlines()[1].split(",")[0] == "0"


def test_health_says_that_it_is_ready(shared: Running) -> None:
    assert httpx.get(f"{shared.addresses['url']}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{shared.addresses['url']}/readyz").json()["status"] == "ok"
    assert "leverwatch_items" in httpx.get(f"{shared.addresses['url']}/metrics").text
