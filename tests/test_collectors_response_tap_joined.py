"""From a body's bytes to a row of `requests`: the tap's span, the engine's span, and what the two say together."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import pytest
from collectors_tap_app import COMPLETION, PROMPT, STREAM, STREAMED, Engine, Sent, asked, proxied, request, served
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from collectors import response_tap
from collectors.response_tap import Gaps, ResponseTap
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

ASKED = (
    "select request_id, engine, model, prompt_tokens, cached_tokens, output_tokens, draft_tokens, accepted_tokens, verify_steps, outcome, "
    "accepted_by_position, chunks, chunk_gap_p50_s, chunk_gap_p95_s, chunk_gap_p99_s, chunk_gap_max_s, stall_s, "
    "provenance::json::varchar as provenance from requests"
)


class TracingEngine(Engine):
    """The app with vLLM's span for each request, made from the trace context that reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.exporter = InMemorySpanExporter()
        self._provider = TracerProvider(resource=Resource.create({"service.name": "vllm"}), shutdown_on_exit=False)
        self._provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        started_ns = time.time_ns()
        await super().__call__(scope, receive, send)
        context = TraceContextTextMapPropagator().extract(self.seen[-1])
        tracer = self._provider.get_tracer("vllm.tracing.otel")
        span = tracer.start_span("llm_request", context=context, kind=SpanKind.SERVER, start_time=started_ns)
        span.set_attribute("gen_ai.request.id", "chatcmpl-b5709e79b5556b35")
        span.set_attribute("gen_ai.usage.prompt_tokens", 582)
        span.set_attribute("gen_ai.usage.completion_tokens", 18)
        span.end()


@pytest.mark.parametrize("kind", ["middleware", "proxy"])
@pytest.mark.parametrize("case", ["vllm", "vllm_stream"])
def test_tap_and_engine_are_one_request_with_what_only_the_body_says(kind: str, case: str, tmp_path: Path) -> None:
    engine, sent = TracingEngine(), Sent()

    async def scenario() -> None:
        app = ResponseTap(engine, sent.tap) if kind == "middleware" else engine
        async with served(app) as port, proxied(sent.tap, port) as proxy:
            await asked(port if kind == "middleware" else proxy, request(case))

    asyncio.run(scenario())
    room = EngineRoom(tmp_path, Config())
    for spans in (sent.spans(), list(engine.exporter.get_finished_spans())):
        room.spool.append("traces", kind, time.time_ns(), encode_spans(spans).SerializeToString()).result(10)
    room.drain()
    (row,) = room.store.rows(ASKED)
    said = str(room.store.rows("select * from spans"))
    odd = room.store.rows("select reasons from ingest_ledger where cardinality(reasons) > 0")
    room.close()
    assert row | {
        "request_id": "chatcmpl-b5709e79b5556b35", "engine": "vllm", "model": "tiny", "prompt_tokens": 582, "cached_tokens": 512,
        "output_tokens": 18, "draft_tokens": 40, "accepted_tokens": 7, "verify_steps": 10, "outcome": "ok",
        "accepted_by_position": [4, 2, 1, 0],
    } == row  # fmt: skip
    for column in ("cached_tokens", "draft_tokens", "accepted_tokens", "verify_steps"):
        assert f'"{column}":"body"' in row["provenance"]
    assert '"prompt_tokens":"span"' in row["provenance"]
    assert (row["chunks"] is not None) == ('"chunks":"body"' in row["provenance"]) == (case == "vllm_stream")
    gaps = [row[f"chunk_gap_{name}_s"] for name in ("p50", "p95", "p99", "max")]
    assert gaps == sorted(gaps) if (row["chunks"] or 0) > 1 else gaps == [None] * 4  # what comes in one piece has no gap
    assert PROMPT not in said and COMPLETION not in said
    assert odd == []


def test_the_stalls_of_a_stream_are_found_in_its_chunk_times() -> None:
    reading = response_tap.Reading("/v1/chat/completions", 100.0)
    reading.head(200, [(b"content-type", b"text/event-stream")])
    at_s = 100.0
    for number, chunk in enumerate(STREAMED["vllm_stream"][1:5]):
        at_s += (0.25, 0.02, 0.9, 0.02)[number]
        reading.take(chunk, at_s)
    reading.take(b": keep-alive\n\n", at_s + 5)
    found = reading.attributes(is_whole=True)
    assert found["leverwatch.body.first_chunk_s"] == pytest.approx(0.25)
    assert found["leverwatch.body.chunks"] == 4
    assert found["leverwatch.body.stalls"] == 1
    assert found["leverwatch.body.stall_s"] == pytest.approx(0.9)
    assert found["leverwatch.body.max_gap_s"] == pytest.approx(0.9)
    assert found["leverwatch.body.gap_p50_s"] == pytest.approx(0.02, rel=0.05)
    assert len(STREAM) == 7


@pytest.mark.parametrize("scale_s", [1e-4, 0.03, 2.0])
def test_percentiles_of_gaps_are_within_five_per_cent_in_fixed_memory(scale_s: float) -> None:
    gaps, said = Gaps(), [scale_s * (1 + number % 997 / 100) for number in range(20_000)]
    for gap_s in said:
        gaps.add(gap_s)
    found, ordered = gaps.facts(), sorted(said)
    for name, share in (("gap_p50_s", 0.5), ("gap_p95_s", 0.95), ("gap_p99_s", 0.99)):
        assert found[name] == pytest.approx(ordered[int(share * len(ordered)) - 1], rel=0.05)
    assert found["max_gap_s"] == ordered[-1]
    assert found["stalls"] == 0  # slow throughout is no stall: the median is slow too
    assert len(gaps._counts) < 40


def test_gaps_of_nothing_and_of_no_length_say_so() -> None:
    gaps = Gaps()
    assert gaps.facts() == {}
    gaps.add(0.0)
    assert gaps.facts() == {"gap_p50_s": 0.0, "gap_p95_s": 0.0, "gap_p99_s": 0.0, "max_gap_s": 0.0, "stalls": 0, "stall_s": 0.0}


def test_it_runs_where_nothing_is_but_opentelemetry(tmp_path: Path) -> None:
    """A fresh environment, the printed file, a proxy in front of nothing: it answers 502 and ends well."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    wanted = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], capture_output=True, text=True, timeout=240)
    if installed.returncode:
        pytest.skip(f"pip cannot install opentelemetry here: {installed.stderr.strip()[-200:]}")
    printed = subprocess.run([sys.executable, "-m", "leverwatch.cli.main", "tap"], capture_output=True, text=True, timeout=60, check=True)
    (tmp_path / "response_tap.py").write_text(printed.stdout, encoding="utf-8")
    script = (
        "import asyncio, json, threading, response_tap as t\n"
        "from http.server import BaseHTTPRequestHandler, HTTPServer\n"
        "bodies = []\n"
        "class Collector(BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        bodies.append(self.rfile.read(int(self.headers['content-length'])))\n"
        "        self.send_response(200); self.end_headers()\n"
        "    def log_message(self, *_): pass\n"
        "collector = HTTPServer(('127.0.0.1', 0), Collector)\n"
        "threading.Thread(target=collector.serve_forever, daemon=True).start()\n"
        "import os; os.environ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] = f'http://127.0.0.1:{collector.server_port}/v1/traces'\n"
        "async def app(scope, receive, send):\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    body = json.dumps({'id': 'chatcmpl-1', 'usage': {'prompt_tokens_details': {'cached_tokens': 7}}}).encode()\n"
        "    await send({'type': 'http.response.body', 'body': body})\n"
        "tap, shutdown = t.from_environment()\n"
        "async def nothing(*_): pass\n"
        "scope = {'type': 'http', 'method': 'POST', 'path': '/v1/chat/completions', 'headers': []}\n"
        "asyncio.run(t.ResponseTap(app, tap)(scope, nothing, nothing))\n"
        "shutdown()\n"
        "print(b'leverwatch.body.cached_tokens' in b''.join(bodies) and b'response_body' in b''.join(bodies))\n"
    )
    ran = subprocess.run([python, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (ran.stdout.strip(), ran.returncode) == ("True", 0), ran.stderr
