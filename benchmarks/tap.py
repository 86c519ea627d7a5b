"""What the response tap adds: the delay of a request without it, through the middleware and through the proxy, in turn in one run.

    python benchmarks/tap.py --requests 400

It starts an ASGI server that answers plain (some 2 kB), streamed (16 chunks 2 ms apart) and in a burst (64 chunks at once), the same with
the middleware, and the proxy in front of the first; each in a process of its own, on loopback. One client asks them in turn over kept
connections. Spans go to a collector that takes everything.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import uvicorn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from collectors import response_tap

ID = {"id": "chatcmpl-b5709e79b5556b35", "model": "tiny"}
USAGE = {"usage": {"prompt_tokens": 582, "completion_tokens": 64, "prompt_tokens_details": {"cached_tokens": 512}}}
PLAIN = json.dumps({**ID, "choices": [{"index": 0, "message": {"content": "x" * 2000}, "finish_reason": "stop"}], **USAGE}).encode()
CHUNK = b"data: " + json.dumps({**ID, "choices": [{"index": 0, "delta": {"content": "word "}}]}).encode() + b"\n\n"
LAST = b"data: " + json.dumps({**ID, "choices": [], **USAGE}).encode() + b"\n\ndata: [DONE]\n\n"
WAYS = ("without", "middleware", "proxy")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """An engine that takes no time."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    is_streamed, is_burst = scope["query_string"] != b"plain", scope["query_string"] == b"burst"
    kind = b"text/event-stream" if is_streamed else b"application/json"
    length = [] if is_streamed else [(b"content-length", b"%d" % len(PLAIN))]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind), *length]})
    begun = time.perf_counter()
    for number in range(64 if is_burst else 16 if is_streamed else 0):
        if not is_burst:  # tokens come when they come, whatever the server does meanwhile
            await asyncio.sleep(begun + 0.002 * number - time.perf_counter())
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
    await send({"type": "http.response.body", "body": LAST if is_streamed else PLAIN})


class Collector(BaseHTTPRequestHandler):
    """Takes every export."""

    def do_POST(self) -> None:
        """Answers an export."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def collect(told: Any) -> None:
    """Runs the collector."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    told.send(server.server_port)
    server.serve_forever()


def serve(told: Any, tapped: bool) -> None:
    """Runs the engine, with the middleware or without."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio knows it as TCP and sets TCP_NODELAY
    listening.bind(("127.0.0.1", 0))
    told.send(listening.getsockname()[1])
    config = uvicorn.Config(response_tap.ResponseTap(app) if tapped else app, log_level="critical", lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


def stand_between(told: Any, port: int) -> None:
    """Runs the proxy."""
    tap, _ = response_tap.from_environment()
    asyncio.run(response_tap.run(f"http://127.0.0.1:{port}", "127.0.0.1", 0, tap, told.send))


def started(target: Any, *args: Any) -> tuple[Any, int]:
    """A process, and the port that it tells."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=target, args=(there, *args), daemon=True)
    process.start()
    return process, here.recv()


def delays_s(connection: http.client.HTTPConnection, kind: str) -> tuple[float, float]:
    """To the first bytes of the body and to its end, of one request."""
    begun = time.perf_counter()
    connection.request("POST", f"/v1/chat/completions?{kind}", b'{"messages": []}', {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.read(1)
    first = time.perf_counter() - begun
    answer.read()
    return first, time.perf_counter() - begun


def main() -> None:
    """Runs the benchmark and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=400, help="of each kind, through each way")
    args = parser.parse_args()
    processes = [started(collect)]
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"http://127.0.0.1:{processes[0][1]}/v1/traces"
    os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    processes += [started(serve, False), started(serve, True)]
    processes.append(started(stand_between, processes[1][1]))
    connections = {way: http.client.HTTPConnection("127.0.0.1", port) for way, (_, port) in zip(WAYS, processes[1:], strict=True)}
    time.sleep(0.5)
    for kind in ("plain", "streamed", "burst"):
        measure(connections, kind, args.requests)
    for process, _ in processes:
        process.terminate()
        process.join()


def measure(connections: dict[str, http.client.HTTPConnection], kind: str, requests: int) -> None:
    """Asks in turn and prints medians, differences and ratios."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number in range(requests + 20):
        for way, connection in connections.items():
            delays = delays_s(connection, kind)
            if number >= 20:
                found[way].append(delays)
    for place, what in enumerate(("first byte", "whole answer")):
        medians = {way: statistics.median(delays[place] for delays in found[way]) * 1e3 for way in WAYS}
        for way in WAYS[1:]:
            added, ratio = medians[way] - medians["without"], medians[way] / medians["without"]
            print(f"{kind}, {what}: {medians['without']:.2f} ms without, {medians[way]:.2f} ms {way}: {added:+.2f} ms, x {ratio:.2f}")


if __name__ == "__main__":
    main()
