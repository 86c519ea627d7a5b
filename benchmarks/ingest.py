"""Durable ingest over gRPC: spans acknowledged a second by a running `leverwatch serve`, the delay of one request, and what is stored.

    python benchmarks/ingest.py --senders 8 --seconds 60

It starts a server on a temporary folder and loopback, sends 512-span exports of vLLM-like spans (20 attributes, about 830 bytes),
stops by itself, and then counts: every acknowledged span must be in `spans` and `requests`, once. Senders and server share the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SPANS_A_BODY = 512
MARK_TRACE, MARK_SPAN = b"\xa5" * 16, b"\x5a" * 8


def template(spans: int = SPANS_A_BODY) -> list[bytes]:
    """An export of equal spans, cut where each span's ids stand."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    for key, text in (("service.name", "vllm"), ("service.instance.id", "bench-0"), ("leverwatch.model", "bench")):
        resource.resource.attributes.add(key=key).value.string_value = text
    scope = resource.scope_spans.add()
    scope.scope.name = "vllm.tracing.otel"
    now = time.time_ns()
    for _ in range(spans):
        span = scope.spans.add(trace_id=MARK_TRACE, span_id=MARK_SPAN, name="llm_request", kind=2)
        span.start_time_unix_nano, span.end_time_unix_nano = now - 2_000_000_000, now
        for name in (
            "time_to_first_token",
            "e2e",
            "time_in_queue",
            "time_in_model_prefill",
            "time_in_model_decode",
            "time_in_model_inference",
        ):
            span.attributes.add(key=f"gen_ai.latency.{name}").value.double_value = 0.123456789
        for name in ("prompt_tokens", "completion_tokens"):
            span.attributes.add(key=f"gen_ai.usage.{name}").value.int_value = 512
        span.attributes.add(key="gen_ai.request.id").value.string_value = "chatcmpl-5bcdf264-4231-426b-9f05-c4abb3b1be7a"
        span.attributes.add(key="gen_ai.request.temperature").value.double_value = 0.7
        for number in range(10):
            span.attributes.add(key=f"bench.attribute.{number}").value.string_value = "a value of some length"
    return request.SerializeToString().split(MARK_TRACE)


def body(pieces: list[bytes], random: Callable[[int], bytes]) -> bytes:
    """The export with fresh ids."""
    ids = random(24 * (len(pieces) - 1))
    out = [pieces[0]]
    for index, piece in enumerate(pieces[1:]):
        at = index * 24
        out += [ids[at : at + 16], piece.replace(MARK_SPAN, ids[at + 16 : at + 24], 1)]
    return b"".join(out)


def send(address: str, until: float, acknowledged: list[int]) -> None:
    """Sends exports until a time; adds what was acknowledged."""
    pieces = template()
    with grpc.insecure_channel(address) as channel:
        export = channel.unary_unary(EXPORT)
        while time.monotonic() < until:
            content = body(pieces, os.urandom)
            while time.monotonic() < until:
                try:
                    export(content, timeout=30)
                except grpc.RpcError as error:
                    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                        raise
                    time.sleep(0.2)
                else:
                    acknowledged.append(SPANS_A_BODY)
                    break


def idle_ms(address: str, count: int = 50) -> float:
    """The median delay of one export with one request at a time, in milliseconds."""
    delays = []
    content = body(template(1), os.urandom)
    with grpc.insecure_channel(address) as channel:
        export = channel.unary_unary(EXPORT)
        export(content)
        for _ in range(count):
            time.sleep(0.05)
            started = time.perf_counter()
            export(content)
            delays.append((time.perf_counter() - started) * 1e3)
    return statistics.median(delays)


def main() -> None:
    """Runs the benchmark and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--senders", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--patience", type=float, default=300.0, help="how long to wait until all is stored, in seconds")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", folder, "--format", "json"]
        server = subprocess.Popen([*command, "--port", "0", "--grpc-port", "0", "--otlp-http-port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            addresses = json.loads(server.stdout.readline())
            time.sleep(3)
            run(args, addresses, server.pid)
        finally:
            server.terminate()
            server.wait(60)


def run(args: argparse.Namespace, addresses: dict[str, str], pid: int) -> None:
    """Sends, waits, counts, prints."""
    print(f"idle: {idle_ms(addresses['otlp_grpc']):.1f} ms median to a durable acknowledgement")
    acknowledged: list[int] = []
    started = time.monotonic()
    until = started + args.seconds
    threads = [threading.Thread(target=send, args=(addresses["otlp_grpc"], until, acknowledged)) for _ in range(args.senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - started
    spans = sum(acknowledged)
    print(f"{args.senders} senders: {spans / took_s:,.0f} spans/s acknowledged over {took_s:.0f} s")
    print(f"server: {memory_mib(pid):.0f} MiB resident at the end of sending")
    while time.monotonic() - started < args.seconds + args.patience:
        answer = httpx.post(
            f"{addresses['url']}/api/sql", json={"sql": "select (select count(*) from spans), (select count(*) from requests)"}, timeout=60
        )
        stored, requests = answer.json()["rows"][0] if answer.is_success else (0, 0)
        if stored == requests == spans + 1:
            break
        time.sleep(1)
    print(
        f"stored {stored - 1:,} spans and {requests - 1:,} requests of {spans:,}, {time.monotonic() - until:.0f} s after the last was sent"
    )


def memory_mib(pid: int) -> float:
    """The resident memory of a process, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


if __name__ == "__main__":
    main()
