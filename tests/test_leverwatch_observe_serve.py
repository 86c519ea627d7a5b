"""A whole server whose own spans come back to it by a Collector: nothing grows, nothing is counted, and nothing private is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import observe_backend
import pytest
from observe_backend import Backend
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors import own

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
TOKEN, PROMPT, LITERAL = "a-token-of-many-letters", "the prompt of a customer", "a literal of a question"
PATIENCE_S = 60.0


class Relayed(Backend):
    """A backend that hands everything on to a server, as a Collector does that sends to more than one place."""

    target = ""

    def take(self, kind: str, body: bytes) -> None:
        """Keeps an export and sends it on."""
        super().take(kind, body)
        if self.target:
            with grpc.insecure_channel(self.target) as channel:
                metadata = (("authorization", f"Bearer {TOKEN}"),)
                channel.unary_unary(TRACES if kind == "trace" else METRICS)(body, metadata=metadata, timeout=30)


def vllm() -> bytes:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "vllm"
    scope, now_ns = group.scope_spans.add(), time.time_ns()
    scope.scope.name = "vllm.llm_engine"
    span = scope.spans.add(trace_id=os.urandom(16), span_id=os.urandom(8), name="llm_request", kind=2)
    span.start_time_unix_nano, span.end_time_unix_nano = now_ns - 10**9, now_ns
    span.attributes.add(key="gen_ai.usage.prompt_tokens").value.int_value = 5
    span.attributes.add(key="gen_ai.prompt").value.string_value = PROMPT
    body: bytes = request.SerializeToString()
    return body


class Running:
    """A server process whose own spans go to a relay in front of it, and what it wrote on standard error."""

    def __init__(self, folder: Path, relay: Relayed) -> None:
        settings = {"ENDPOINT": relay.endpoint, "EXPORT_RATIO": "1", "METRICS_INTERVAL_S": "1", "LOG_FORMAT": "json", "LOG_LEVEL": "info"}
        environment = {**os.environ, **{f"LEVERWATCH_OBSERVE_{key}": value for key, value in settings.items()}}
        folder.mkdir()
        access = [f'{level} = [{{ token = "{TOKEN}" }}]' for level in ("ingest", "read", "admin")]
        (folder / "leverwatch.toml").write_text("\n".join(["[access]", *access]))
        ports = ["--port", "0", "--grpc-port", "0", "--otlp-http-port", "0"]
        command = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(folder), "--format", "json", *ports]
        self.said = (folder / "said").open("w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.said, text=True, env=environment)
        assert self.process.stdout is not None
        self.addresses = json.loads(self.process.stdout.readline())
        relay.target = self.addresses["otlp_grpc"]

    def ask(self, path: str, **what: Any) -> Any:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return httpx.request("POST" if what else "GET", f"{self.addresses['url']}{path}", headers=headers, timeout=30, **what)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Relayed]]:
    with observe_backend.over_grpc(Relayed()) as relay:
        assert isinstance(relay, Relayed)
        running = Running(tmp_path_factory.mktemp("own") / "data", relay)
        try:
            with grpc.insecure_channel(running.addresses["otlp_grpc"]) as channel:
                channel.unary_unary(TRACES)(vllm(), metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=30)
            running.ask("/api/sql", json={"sql": f"select '{LITERAL}' as said"})
            running.ask(f"/segment?model={LITERAL.replace(' ', '+')}")
            relay.named("POST /api/sql")
            relay.named("job load")
            relay.metric("leverwatch_exports")
            yield running, relay
        finally:
            running.process.send_signal(signal.SIGTERM)
            running.process.communicate(timeout=30)
            running.said.close()


def dropped(running: Running) -> int:
    rows = running.ask("/api/ledger").json()
    return sum(row["dropped"] for row in rows if any(reason["reason"] == own.REASON for reason in row["reasons"]))


def test_own_spans_that_come_back_are_dropped_and_make_no_more_of_them(both: tuple[Running, Relayed]) -> None:
    running, relay = both
    deadline, sent = time.monotonic() + PATIENCE_S, len(relay.traces)
    while (not dropped(running) or len(relay.traces) < sent + 2) and time.monotonic() < deadline:  # each asking makes a span
        time.sleep(0.2)
    assert dropped(running) > 0
    assert len(relay.named("receive")) == 1, "the engine's export alone has a span, whatever came back meanwhile"
    found = running.ask("/api/sql", json={"sql": "select count(*), count(distinct service) from spans"}).json()["rows"]
    assert found == [[1, 1]]
    assert running.ask("/api/sql", json={"sql": "select count(*) from samples where name like 'leverwatch%'"}).json()["rows"] == [[0]]


def test_neither_token_nor_prompt_nor_what_was_asked_is_in_spans_metrics_or_log(both: tuple[Running, Relayed]) -> None:
    running, relay = both
    told = b"".join(relay.raw) + Path(running.said.name).read_bytes()
    assert b"/api/sql" in told
    assert [word for word in (TOKEN, PROMPT, LITERAL, LITERAL.replace(" ", "+"), "select") if word.encode() in told] == []


def test_every_line_of_the_log_is_an_object(both: tuple[Running, Relayed]) -> None:
    running, _ = both
    assert all(json.loads(line)["level"] for line in Path(running.said.name).read_text().splitlines())


@pytest.mark.parametrize("port", ["--grpc-port"])
def test_a_server_that_would_send_to_itself_does_not_start(tmp_path: Path, port: str) -> None:
    with observe_backend.over_grpc() as other:  # a port that is known to be taken is not reached: the endpoint is refused before
        number = other.endpoint.rpartition(":")[2]
    environment = {**os.environ, "LEVERWATCH_OBSERVE_ENDPOINT": f"http://localhost:{number}"}
    command = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(tmp_path / "data"), port, number]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert ran.returncode == 2
    assert "is a port of this very server" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()
