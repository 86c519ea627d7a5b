"""A whole server as a process: metrics, logs, a scrape target, posted evaluations and recorded files, each counted once."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from collectors_bodies import body, span
from collectors_metrics import gauge, metrics, point
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from test_leverwatch_serve import Running

from leverwatch.cli.main import main

TEXT = b"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n# TYPE a_total counter\na_total 9\n"


class Metrics(BaseHTTPRequestHandler):
    """A target: /metrics answers, /hangs never does."""

    def do_GET(self) -> None:
        if self.path == "/hangs":
            time.sleep(30)
            return
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(TEXT)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def target() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def server(tmp_path: Path, target: str) -> Iterator[Running]:
    config = tmp_path / "leverwatch.toml"
    config.write_text(
        f'[[scrape]]\nurl = "{target}/hangs"\ninterval_s = 1\ntimeout_s = 0.5\n'
        f'[[scrape]]\nurl = "{target}/metrics"\ninterval_s = 1\ntimeout_s = 0.5\nreplica = "pod-1"\n'
        '[scrape.labels]\n"leverwatch.hardware" = "h100"\n'
    )
    running = Running(tmp_path / "data", "--config", str(config))
    yield running
    if running.process.poll() is None:
        running.end()


def count_once(reader: PeriodicExportingMetricReader) -> None:
    """One counter of three, as a real SDK sends it."""
    provider = MeterProvider([reader], resource=Resource.create({"service.name": "sdk"}))
    provider.get_meter("m").create_counter("sdk_total").add(3, {"arm": "x"})
    provider.shutdown()


def test_every_signal_arrives_once_and_a_target_that_hangs_stops_nothing(server: Running, tmp_path: Path, target: str) -> None:
    at = server.addresses
    count_once(PeriodicExportingMetricReader(GrpcExporter(endpoint=at["otlp_grpc"], insecure=True)))
    count_once(PeriodicExportingMetricReader(HttpExporter(endpoint=f"{at['otlp_http']}/v1/metrics", compression=Compression.Gzip)))
    score = {"suite": "mmlu", "kind": "public_benchmark", "score": 0.5, "lever": "weight_quantization", "setting": "fp8", "run_id": "r"}
    for _ in range(2):
        assert httpx.post(f"{at['url']}/api/evaluations", json=score).json() == {"taken": 1}
    assert httpx.post(f"{at['url']}/api/evaluations", json=[score, {"suite": "mmlu"}]).status_code == 400

    (tmp_path / "spans.pb").write_bytes(body(span(1), span(2)))
    (tmp_path / "metrics.pb").write_bytes(metrics(gauge("loaded", point(1.0))).SerializeToString())
    ended = {"request_id": "r-1", "request_received_ms": 1_700_000_000_000, "total_time_ms": 5, "output_tokens": 2}
    event = {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": ended}
    (tmp_path / "trace.jsonl").write_text(json.dumps(event) + "\n")
    (tmp_path / "requests.csv").write_text("request_id,started_at,output_tokens\nr-9,2023-11-14T22:13:20Z,7\n")
    for name in ("spans.pb", "metrics.pb", "trace.jsonl", "requests.csv"):
        assert main(["load", str(tmp_path / name), "--data", str(tmp_path / "data")]) == 0

    server.wait_for("select suite, score, setting from evaluations", [["mmlu", 0.5, "fp8"]])
    server.wait_for("select count(*), min(value), max(value) from samples where name = 'sdk_total'", [[2, 3, 3]])
    server.wait_for("select count(*) from requests", [[4]])
    asked = "select distinct replica, signal, value, labels['leverwatch.hardware'] from samples where signal = 'running_requests'"
    server.wait_for(asked, [["pod-1", "running_requests", 3, "h100"]])

    ready = httpx.get(f"{at['url']}/readyz")
    assert (ready.status_code, list(ready.json()["warnings"])) == (200, [f"scrape:{target.removeprefix('http://')}/hangs"])
    ledger = {(row["sender"].split(":")[0], row["signal"]): row for row in httpx.get(f"{at['url']}/api/ledger").json()}
    for row in ledger.values():
        assert row["received"] == sum(row[name] for name in ("stored", "duplicate", "rejected", "dropped", "pending"))
    assert (ledger["127.0.0.1", "evaluations"]["stored"], ledger["127.0.0.1", "evaluations"]["duplicate"]) == (1, 1)
    assert ledger["127.0.0.1", "evaluations"]["rejected"] == 1
    asked_at = time.monotonic()
    assert server.end(signal.SIGTERM) == (0, "")
    assert time.monotonic() - asked_at < 10


def test_what_is_acknowledged_of_every_signal_survives_a_kill_and_is_stored_once(server: Running, tmp_path: Path) -> None:
    at = server.addresses
    kind = {"content-type": "application/x-protobuf"}
    content = metrics(gauge("g", point(1.0), point(1.0, at=1_700_000_000_000_001_000))).SerializeToString()
    assert httpx.post(f"{at['otlp_http']}/v1/metrics", content=content, headers=kind).status_code == 200
    assert httpx.post(f"{at['url']}/api/evaluations", json={"suite": "s", "score": 1, "run_id": "r"}).status_code == 200
    server.end(signal.SIGKILL)
    again = Running(tmp_path / "data")
    assert httpx.post(f"{again.addresses['otlp_http']}/v1/metrics", content=content, headers=kind).status_code == 200
    again.wait_for("select count(*) from evaluations", [[1]])
    again.wait_for("select sum(stored)::int, sum(duplicate)::int from ingest_ledger where signal = 'metrics'", [[2, 2]])
    assert again.end()[0] == 0
