"""A small ASGI server that answers as vLLM and SGLang document it, and what a test needs to ask it, with a tap or without."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from collectors.response_tap import SCOPE, Caller, Proxy, Tap

PROMPT, COMPLETION = "prompt-in-clear", "completion-in-clear"
SPECULATION = {
    "mean_acceptance_length": 1.7,
    "draft_acceptance_rate": 0.175,
    "acceptance_histogram": [6, 2, 1, 1, 0],
    "num_spec_steps": 10,
    "num_accepted_draft_tokens": 7,
    "num_draft_tokens": 40,
    "num_spec_tokens": 4,
    "per_step_accepted": [0, 0, 0, 0, 0, 0, 1, 1, 2, 3],
    "per_step_drafted": [4] * 10,
}
USAGE = {"prompt_tokens": 582, "total_tokens": 600, "completion_tokens": 18, "prompt_tokens_details": {"cached_tokens": 512}}
VLLM_ANSWER: dict[str, Any] = {
    "id": "chatcmpl-b5709e79b5556b35",
    "object": "chat.completion",
    "created": 1795956574,
    "model": "tiny",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": COMPLETION}, "logprobs": None, "finish_reason": "stop"}],
    "usage": USAGE,
    "metrics": {"queue_time_ms": 12.0, "generation_time_ms": 250.0, "speculative_decoding": SPECULATION},
}
META = {
    "id": "5b8efff798038103d269b633813fc60c",
    "finish_reason": {"type": "length", "length": 32},
    "prompt_tokens": 100,
    "completion_tokens": 32,
    "cached_tokens": 64,
    "queue_time": 0.25,
    "e2e_latency": 1.5,
    "spec_verify_ct": 12,
    "spec_num_correct_drafts": 19,
    "spec_num_proposed_drafts": 36,
    "spec_correct_drafts_histogram": [3, 4, 3, 2],
}
SGLANG_ANSWER: dict[str, Any] = {"text": COMPLETION, "output_ids": [1, 2, 3], "meta_info": META}


def chunk(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> dict[str, Any]:
    """One event of vLLM's chat stream."""
    choices = [{"index": index, "delta": delta, "finish_reason": finish}]
    return {"id": VLLM_ANSWER["id"], "object": "chat.completion.chunk", "model": "tiny", "choices": choices}


STREAM: list[dict[str, Any]] = [
    chunk({"role": "assistant", "content": ""}),
    *(chunk({"content": COMPLETION}) for _ in range(4)),
    chunk({}, "stop"),
    {"id": VLLM_ANSWER["id"], "model": "tiny", "choices": [], "usage": USAGE, "metrics": VLLM_ANSWER["metrics"]},
]
NATIVE_STREAM: list[dict[str, Any]] = [
    {"text": COMPLETION * n, "meta_info": {**META, "completion_tokens": 8 * n, "finish_reason": META["finish_reason"] if n == 4 else None}}
    for n in range(1, 5)
]
SAMPLES = [chunk({"content": COMPLETION}, index=1), chunk({}, "length", 0), chunk({}, "stop", 1)]


def events(items: list[dict[str, Any]], *, done: bool = True) -> list[bytes]:
    """The chunks of an event stream."""
    chunks = [b"data: " + json.dumps(item).encode() + b"\n\n" for item in items]
    return [*chunks, b"data: [DONE]\n\n"] if done else chunks


PLAIN: dict[str, tuple[int, Any]] = {
    "vllm": (200, VLLM_ANSWER),
    "native": (200, SGLANG_ANSWER),
    "refused": (400, {"error": {"message": f"too long: {PROMPT}", "type": "BadRequestError", "code": 400}}),
    "failed": (500, {"object": "error", "message": PROMPT, "code": 500}),
    "no_usage": (200, {"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": "stop"}]}),
    "large": (200, {**VLLM_ANSWER, "choices": [{"index": 0, "message": {"content": '"usage": {"prompt_tokens": 1} ' * 100_000}}]}),
}
STREAMED: dict[str, list[bytes]] = {
    "vllm_stream": events(STREAM),
    "native_stream": events(NATIVE_STREAM),
    "samples": events([*STREAM[:2], *SAMPLES, STREAM[-1]]),
    "no_usage_stream": events(STREAM[:-1]),
    "failing_stream": events([*STREAM[:2], {"error": {"message": PROMPT, "code": 500}}]),
    "cut_stream": events(STREAM[:3], done=False),
    "crlf_stream": [part.replace(b"\n", b"\r\n") for part in events(STREAM)],
    "split_stream": [bytes([byte]) for byte in b": keep-alive\n\n" + b"".join(events(STREAM))],
}


class Engine:
    """The app. `gate` holds a stream back after its second chunk in the cases `held` and `endless`; `seen` has each request's headers."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.seen: list[dict[str, str]] = []
        self.bodies: list[int] = []
        self.cancelled = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        case = parse_qs(scope["query_string"].decode()).get("case", ["vllm"])[0]
        length, more = 0, True
        while more:
            message = await receive()
            length, more = length + len(message.get("body", b"")), message.get("more_body", False)
        self.bodies.append(length)
        if case in PLAIN or case == "gzip":
            await self._plain(case, send)
        elif case == "nothing":
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})
        elif case == "headers_only":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"99")]})
            await send({"type": "http.response.body"})
        else:
            await self._streamed(case, receive, send)

    async def _plain(self, case: str, send: Any) -> None:
        status, answer = PLAIN["vllm" if case == "gzip" else case]
        body = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"x-request-id", b"r-1")]
        if case == "gzip":
            body, headers = gzip.compress(body), [*headers, (b"content-encoding", b"gzip")]
        await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    async def _streamed(self, case: str, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream; charset=utf-8")]})
        parts = STREAMED.get(case, STREAMED["vllm_stream"])
        for number, part in enumerate(parts):
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if case in ("held", "endless") and number == 1 and await self._left(receive):
                self.cancelled += 1
                return
        await send({"type": "http.response.body", "body": b""})

    async def _left(self, receive: Any) -> bool:
        """Whether the client hangs up before the gate opens."""
        tasks = asyncio.ensure_future(receive()), asyncio.ensure_future(self.gate.wait())
        done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return tasks[0] in done


class Sent:
    """A tap whose spans a test looks at."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False, **options)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tap = Tap(provider.get_tracer(SCOPE))

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def attributes(self) -> dict[str, Any]:
        """The one span's attributes without their prefix."""
        (span,) = self.spans()
        return {name.removeprefix("leverwatch.body."): value for name, value in (span.attributes or {}).items()}


@contextlib.asynccontextmanager
async def served(app: Any) -> AsyncIterator[int]:
    """A real server on a free port."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off"))
    task = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def proxied(tap: Tap, upstream: int) -> AsyncIterator[int]:
    """The proxy on a free port, in front of a port."""
    proxy = Proxy(tap, f"http://127.0.0.1:{upstream}")
    server = await asyncio.get_running_loop().create_server(lambda: Caller(proxy), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def request(case: str, *headers: str, method: str = "POST", path: str = "/v1/chat/completions", body: bytes | None = None) -> bytes:
    """A request's bytes; the connection is closed after it unless a header says otherwise."""
    body = json.dumps({"messages": [{"role": "user", "content": PROMPT}]}).encode() if body is None else body
    lines = [f"{method} {path}?case={case} HTTP/1.1", "Host: example.test", *headers]
    if not any(header.lower().startswith("transfer-encoding") for header in headers):
        lines.append(f"Content-Length: {len(body)}")
    if not any(header.lower().startswith("connection") for header in headers):
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def asked(port: int, *requests: bytes) -> bytes:
    """All bytes that come back on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"".join(requests))
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


def dated(answer: bytes) -> bytes:
    """An answer without its date, which differs between two."""
    head, mark, body = answer.partition(b"\r\n\r\n")
    return b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"date:")) + mark + body
