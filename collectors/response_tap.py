"""Answers of an LLM server pass through, one OpenTelemetry span for each comes out: the facts that only a response body states.

This file stands alone: it needs the standard library and opentelemetry (SDK and an OTLP exporter), so that it can be copied
into an engine's environment. As ASGI middleware, with the file's folder on PYTHONPATH:

    vllm serve MODEL --middleware response_tap.ResponseTap --enable-prompt-tokens-details --per-request-spec-decode-metrics summary

As a proxy in front of any server that speaks the OpenAI API or SGLang's /generate (SGLang takes no middleware):

    python response_tap.py --upstream http://127.0.0.1:30000 --listen 127.0.0.1:8100

Spans go where OTEL_EXPORTER_OTLP_ENDPOINT and its kin say (default: gRPC, http://localhost:4317); OTEL_RESOURCE_ATTRIBUTES and
OTEL_BSP_* work as in every SDK. LEVERWATCH_TAP_PATHS lists the ends of the paths whose POST requests are read. A chunk is passed on
before it is looked at, and nothing of it is changed. The request's body is not read. Of an answer ids, names and numbers are kept,
never its text, and at most BODY_LIMIT bytes of it for as long as it takes to read them.

Traces: the tap's span is the child of the caller's `traceparent`, and the engine gets a `traceparent` that names the tap's span, with
the caller's flags. Without a caller's (or with a broken one) a new trace begins. A caller who says "not sampled" is obeyed: the header
goes on as it came and no span is made, unless OTEL_TRACES_SAMPLER=always_on; the flag that the engine sees is the caller's even then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import logging
import math
import os
import re
import signal
import ssl
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

try:
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:  # the server must serve, with or without telemetry
    MISSING = str(error)
else:
    MISSING = ""

SCOPE, NAME, PREFIX = "leverwatch.response_tap", "response_body", "leverwatch.body."
PATHS = ("/chat/completions", "/completions", "/responses", "/messages", "/generate")
BODY_LIMIT = 1 << 20  # read whole up to here: reading 1 MiB of JSON takes some 5 ms of the event loop, after it was passed on
EDGE_BYTES = 1 << 16  # what is kept of both ends of a longer one
STALL_S, STALL_MEDIANS = 0.5, 5.0
GAP_RATIO = 1.1  # width of a bucket of gaps: a percentile is within 5 % of the true one
GAP_FLOOR = -130  # the lowest bucket: gaps below 2 microseconds
EXPORTERS = {
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
}
COUNTS = ("prompt_tokens", "cached_tokens", "output_tokens", "draft_tokens", "accepted_tokens", "verify_steps")
TIMES = ("queue_s", "decode_s")
CONTENT = ("content", "text", "tool_calls", "reasoning_content", "reasoning", "refusal")
SELDOM = ("usage", "metrics", "meta_info", "sglext", "error", "type", "delta", "status", "stop_reason", "response", "message")

# SGLang's names by version: 0.5.23, then 0.5.13, then 0.5.9. Version 0.5.4 gives verify steps alone.
SGLANG = {
    "verify_steps": ("spec_verify_ct",),
    "accepted_tokens": ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num"),
    "draft_tokens": ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num"),
    "histogram": ("spec_correct_drafts_histogram", "spec_accept_histogram"),
}

Headers = list[tuple[bytes, bytes]]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
logger = logging.getLogger(SCOPE)


class MessageError(ValueError):
    """An HTTP message that cannot be passed on; `status` is what its sender is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _UnreachableError(ConnectionError):
    """The server gave no answer."""


class Answer:
    """What one answer says of itself, gathered from its JSON objects: numbers, ids and names, never its text."""

    def __init__(self) -> None:
        self.request_id: str | None = None
        self.model: str | None = None
        self.has_failed = False
        self.has_ended = False
        self._finish: dict[int, str] = {}
        self._usage: dict[str, Any] = {}
        self._parts: dict[int, dict[str, Any]] = {}

    def add(self, item: Any, place: int = 0) -> bool:
        """Takes a whole answer, one event of a streamed one, or a list of answers; whether it brought tokens."""
        if isinstance(item, list):
            return sum(self.add(entry, index) for index, entry in enumerate(item)) > 0
        if not isinstance(item, dict):
            return False
        self.request_id = self.request_id or _text(item.get("id"))
        self.model = self.model or _text(item.get("model"))
        self.has_failed = self.has_failed or item.get("object") == "error"
        brought = "choices" in item and self._add_choices(item["choices"])
        if not any(map(item.get, SELDOM)):  # most events of a stream: a chunk is read in 8 microseconds
            return brought
        return self._add_seldom(item, _count(item.get("index")) or place) or brought

    def _add_seldom(self, item: Message, place: int) -> bool:
        inner = item.get("response") or item.get("message")
        if isinstance(inner, dict):  # an event of the Responses or the Messages API
            self.add(inner, place)
        meta, kind = _table(item, "meta_info"), _text(item.get("type")) or ""
        self.request_id = self.request_id or _text(meta.get("id"))
        self.has_failed = self.has_failed or bool(item.get("error"))
        self._add_finish(item, meta, place)
        for name, count in _usage(_table(item, "usage")).items():  # a stream may state it with each event, and counts only grow
            self._usage[name] = max(count, self._usage.get(name, 0))
        self._add_part(place, {**_usage(meta), **_sglang(meta), **_vllm(_table(item, "metrics"))})
        details = _table(item, "sglext").get("spec_tokens_details")
        for index, entry in enumerate(details if isinstance(details, list) else [details]):
            self._add_part(index, _sglang(entry if isinstance(entry, dict) else {}))
        brought = kind.endswith((".delta", "_delta")) and kind != "message_delta"
        return brought or bool(meta and (item.get("text") or item.get("output_ids")))

    def facts(self) -> dict[str, Any]:
        """The counts and times by name, summed over the answer's parts where it states no total; absent = not said."""
        facts: dict[str, Any] = {}
        for name in (*COUNTS, *TIMES):
            said = [part[name] for part in self._parts.values() if part.get(name) is not None]
            if said:
                facts[name] = sum(said) if name in COUNTS else max(said)
        facts.update(self._usage)
        histogram = summed([part["histogram"] for part in self._parts.values() if part.get("histogram")])
        if histogram:
            facts["acceptance_histogram"] = histogram
            facts["accepted_by_position"] = by_position(histogram)
            facts.setdefault("accepted_tokens", sum(accepted * steps for accepted, steps in enumerate(histogram)))
        texts = {"request_id": self.request_id, "model": self.model, "finish_reason": self.finish_reason()}
        return {**{name: text for name, text in texts.items() if text}, **facts}

    def finish_reason(self) -> str:
        """Why generation ended, the distinct reasons of several samples joined by commas."""
        return ",".join(dict.fromkeys(reason for _, reason in sorted(self._finish.items())))

    def _add_part(self, place: int, part: dict[str, Any]) -> None:
        if part:
            self._parts.setdefault(place, {}).update(part)

    def _add_finish(self, item: Message, meta: Message, place: int) -> None:
        delta, reason = _table(item, "delta"), meta.get("finish_reason")
        is_ended = item.get("object") == "response" and item.get("status") in ("completed", "incomplete", "failed", "cancelled")
        status = item["status"] if is_ended else None
        self.has_failed = self.has_failed or status == "failed"
        reason = reason.get("type") if isinstance(reason, dict) else reason
        reason = _text(reason) or _text(item.get("stop_reason")) or _text(delta.get("stop_reason")) or _text(status)
        if reason:
            self._finish[place], self.has_ended = reason, True

    def _add_choices(self, choices: Any) -> bool:
        brought = False
        for choice in choices if isinstance(choices, list) else []:
            if not isinstance(choice, dict):
                continue
            place, reason, meta = _count(choice.get("index")) or 0, _text(choice.get("finish_reason")), choice.get("meta_info")
            if reason:
                self._finish[place], self.has_ended = reason, True
            if isinstance(meta, dict):
                self._add_part(place, _sglang(meta))
            delta = choice.get("delta")
            said = delta if isinstance(delta, dict) else choice
            brought = brought or any(map(said.get, CONTENT))
        return brought


def summed(histograms: Sequence[Sequence[int]]) -> list[int]:
    """Histograms of different lengths added place by place."""
    longest = max((len(histogram) for histogram in histograms), default=0)
    return [sum(histogram[place] for histogram in histograms if place < len(histogram)) for place in range(longest)]


def by_position(histogram: Sequence[int]) -> list[int]:
    """How often the draft at each position was accepted, of a histogram of steps by their number of accepted drafts."""
    return [sum(histogram[place + 1 :]) for place in range(len(histogram) - 1)]


def _usage(usage: Message) -> Message:
    """Token counts of `usage` in the form of OpenAI's two APIs or of the Messages API, or of SGLang's `meta_info`."""
    details = {**_table(usage, "input_tokens_details"), **_table(usage, "prompt_tokens_details")}
    prompt, cached = _first(usage, ("prompt_tokens", "input_tokens")), _first(details, ("cached_tokens",))
    if "cache_read_input_tokens" in usage:  # the Messages API counts the cached ones apart
        cached = _count(usage["cache_read_input_tokens"]) or 0
        prompt = None if prompt is None else prompt + cached + (_count(usage.get("cache_creation_input_tokens")) or 0)
    cached = _first(usage, ("cached_tokens",)) if cached is None else cached
    output = _first(usage, ("completion_tokens", "output_tokens"))
    said = {"prompt_tokens": prompt, "cached_tokens": cached, "output_tokens": output}
    return {name: count for name, count in said.items() if count is not None}


def _vllm(metrics: Message) -> Message:
    """Speculation counts and times of vLLM's `metrics`; times come in milliseconds."""
    spec = _table(metrics, "speculative_decoding")
    names = {"verify_steps": "num_spec_steps", "accepted_tokens": "num_accepted_draft_tokens", "draft_tokens": "num_draft_tokens"}
    part: Message = {name: _count(spec.get(key)) for name, key in names.items()}
    steps = spec.get("per_step_accepted")
    if isinstance(steps, list) and steps and "acceptance_histogram" not in spec:
        accepted = [_count(step) or 0 for step in steps if (_count(step) or 0) < 4096]
        spec = {"acceptance_histogram": [accepted.count(number) for number in range(max(accepted, default=0) + 1)]}
    part["histogram"] = _counts(spec.get("acceptance_histogram"))
    for name, key in {"queue_s": "queue_time_ms", "decode_s": "generation_time_ms"}.items():
        seconds = _number(metrics.get(key))
        part[name] = None if seconds is None else seconds / 1e3
    return {name: value for name, value in part.items() if value is not None}


def _sglang(meta: Message) -> Message:
    """Speculation counts under the names of SGLang's versions; its zeros without a verify step mean no speculation."""
    part: Message = {name: _first(meta, keys) for name, keys in SGLANG.items() if name != "histogram"}
    if not part["verify_steps"]:
        return _queue(meta)
    for key in SGLANG["histogram"]:
        part["histogram"] = part.get("histogram") or _counts(meta.get(key))
    return {**{name: value for name, value in part.items() if value is not None}, **_queue(meta)}


def _queue(meta: Message) -> Message:
    seconds = _number(meta.get("queue_time"))
    return {} if seconds is None else {"queue_s": seconds}


def _table(item: Message, key: str) -> Message:
    found = item.get(key)
    return found if isinstance(found, dict) else {}


def _first(item: Message, keys: Iterable[str]) -> int | None:
    return next((count for count in (_count(item.get(key)) for key in keys) if count is not None), None)


def _text(value: Any) -> str | None:
    return value[:256] if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
    return value if whole else None


def _counts(value: Any) -> list[int] | None:
    counts = [_count(entry) for entry in value[:4096]] if isinstance(value, list) else []
    return [count for count in counts if count is not None] if counts and None not in counts else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < math.inf else None


class Gaps:
    """Times between chunks, as a histogram of fixed size: percentiles within 5 %, stalls within one bucket (10 %)."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._sums: dict[int, float] = {}
        self._longest_s = 0.0

    def add(self, gap_s: float) -> None:
        """Counts one gap."""
        place = max(GAP_FLOOR, math.floor(math.log(gap_s / STALL_S, GAP_RATIO))) if gap_s > 0 else GAP_FLOOR
        self._counts[place] = self._counts.get(place, 0) + 1
        self._sums[place] = self._sums.get(place, 0.0) + gap_s
        self._longest_s = max(self._longest_s, gap_s)

    def facts(self) -> dict[str, float]:
        """Percentiles and stalls, in seconds; empty without a gap.

        A stall is a gap of at least max(0.5 s, 5 x the median gap); `stall_s` is the whole length of all stalls.
        """
        if not self._counts:
            return {}
        median_s = self._percentile(0.5)
        from_place = math.ceil(math.log(max(STALL_S, STALL_MEDIANS * median_s) / STALL_S, GAP_RATIO) - 1e-9)
        return {
            "gap_p50_s": median_s,
            "gap_p95_s": self._percentile(0.95),
            "gap_p99_s": self._percentile(0.99),
            "max_gap_s": self._longest_s,
            "stalls": sum(count for place, count in self._counts.items() if place >= from_place),
            "stall_s": sum((length for place, length in self._sums.items() if place >= from_place), 0.0),
        }

    def _percentile(self, share: float) -> float:
        rank = math.ceil(share * sum(self._counts.values()))
        for place in sorted(self._counts):
            rank -= self._counts[place]
            if rank <= 0:
                break
        return min(self._longest_s, STALL_S * math.pow(GAP_RATIO, place + 0.5))


class Events:
    """The data of server-sent events out of the chunks of a stream; one longer than BODY_LIMIT is left out."""

    def __init__(self) -> None:
        self._rest, self._data = b"", [b""] * 0
        self.is_too_large = False

    def take(self, chunk: bytes) -> list[bytes]:
        """The events that a chunk completes."""
        text = self._rest + chunk
        held = b"\r" if text.endswith(b"\r") else b""  # half of a line end, perhaps
        if b"\r" in text:
            text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        self._rest = lines.pop() + held
        found = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip(b" "))
            elif not line and self._data:
                found.append(b"\n".join(self._data))
                self._data = []
        if (self._rest or self._data) and len(self._rest) + sum(map(len, self._data)) > BODY_LIMIT:
            self._rest, self._data, self.is_too_large = b"", [], True
        return found


class Plain:
    """A JSON body of any length: kept up to BODY_LIMIT, of a longer one both ends."""

    def __init__(self) -> None:
        self._head, self._tail, self._length = b"", bytearray(), 0

    def take(self, chunk: bytes) -> None:
        """Adds a chunk."""
        self._length += len(chunk)
        self._tail += chunk
        if self._length > BODY_LIMIT:
            self._head = self._head or bytes(self._tail[:EDGE_BYTES])
            del self._tail[:-EDGE_BYTES]

    def objects(self) -> list[Any]:
        """The body, or what a too large one states at its ends.

        Raises:
            ValueError: it is not JSON.
        """
        if self._length <= BODY_LIMIT:
            return [json.loads(self._tail)] if self._tail.strip() else []
        found: dict[str, Any] = {}
        for key in ("id", "model", "usage", "metrics", "meta_info"):
            mark = f'"{key}":'.encode()  # a quote inside a JSON text has a backslash before it, so text cannot pass for a key
            rest = self._head.partition(mark)[2] if key in ("id", "model") else self._tail.rpartition(mark)[2]
            with contextlib.suppress(ValueError):
                found[key] = json.JSONDecoder().raw_decode(rest.decode(errors="replace").lstrip())[0]
        return [found]


class Reading:
    """One answer on its way: takes status, headers and chunks with their times, gives the span's attributes."""

    def __init__(self, path: str, started_s: float) -> None:
        self.answer, self.gaps = Answer(), Gaps()
        self.status: int | None = None
        self.unread = ""
        self._path, self._started_s = path, started_s
        self._events: Events | None = None
        self._plain: Plain | None = None
        self._inflate: Any = None
        self._first_s: float | None = None
        self._last_s = started_s
        self._chunks = self._bytes = 0

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Takes the status line and the headers."""
        said = {name.lower(): value.strip().lower() for name, value in headers}
        kind, coding = said.get(b"content-type", b"application/json"), said.get(b"content-encoding", b"identity")
        self.status = status
        if coding in (b"gzip", b"x-gzip", b"deflate"):
            self._inflate = zlib.decompressobj(47)  # gzip or zlib, by its head
        elif coding not in (b"identity", b""):
            self.unread = "compressed"
        if kind.startswith(b"text/event-stream"):
            self._events = Events()
        elif b"json" in kind.partition(b";")[0]:
            self._plain = Plain()
        else:
            self.unread = self.unread or "not_json"

    def take(self, chunk: bytes, at_s: float) -> None:
        """Takes a chunk that came at a time."""
        self._bytes += len(chunk)
        if not chunk or self.unread:
            return
        if self._inflate is not None:
            chunk = self._inflate.decompress(chunk, 4 * BODY_LIMIT)
            if self._inflate.unconsumed_tail:
                self.unread = "too_large"
                return
        if self._events is not None:
            self._take_events(self._events.take(chunk), at_s)
        elif self._plain is not None:
            self._plain.take(chunk)

    def attributes(self, *, is_whole: bool) -> dict[str, Any]:
        """What the answer said, under the names of the span; `is_whole` says whether its last byte was passed on."""
        self._take_plain(is_whole)
        facts: dict[str, Any] = {"path": self._path, "bytes": self._bytes, **self.answer.facts()}
        if self.status is not None:
            facts["status_code"] = self.status
        facts["is_streamed"] = self._events is not None
        if self._first_s is not None:
            facts.update(chunks=self._chunks, first_chunk_s=self._first_s - self._started_s, **self.gaps.facts())
        if self._events is not None and self._events.is_too_large:
            self.unread = self.unread or "too_large"
        outcome = self._outcome(is_whole)
        return named({**facts, **({"outcome": outcome} if outcome else {})})

    def _outcome(self, is_whole: bool) -> str:
        """`error` or `aborted`; nothing of an answer that ended well."""
        if self.answer.has_failed or (self.status or 0) >= 400:
            return "error"
        is_cut = self._events is not None and not self.unread and not self.answer.has_ended
        return "aborted" if is_cut or not is_whole or "abort" in self.answer.finish_reason() else ""

    def _take_events(self, events: list[bytes], at_s: float) -> None:
        brought = False
        for event in events:
            if event == b"[DONE]":
                self.answer.has_ended = True
                continue
            try:
                brought |= self.answer.add(json.loads(event.decode()))
            except (ValueError, RecursionError):
                self.unread = "not_json"
        if brought:
            if self._first_s is None:
                self._first_s = at_s
            else:
                self.gaps.add(at_s - self._last_s)
            self._last_s, self._chunks = at_s, self._chunks + 1

    def _take_plain(self, is_whole: bool) -> None:
        if self._plain is None or self.unread or not is_whole:
            return
        try:
            for item in self._plain.objects():
                self.answer.add(item)
        except (ValueError, RecursionError):
            self.unread = "not_json"
        self._plain = None


def named(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts as the span's attributes: full names, lists as JSON text."""
    return {PREFIX + name: json.dumps(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}


class Exchange:
    """One request and its answer: the span that is open for it. Nothing in here may fail the answer."""

    def __init__(self, tap: Tap, path: str, headers: Headers) -> None:
        self._started_ns, self._started_s = time.time_ns(), time.perf_counter()
        self._reading = Reading(path, self._started_s)
        self.headers, self._span = tap.joined(headers, self._started_ns)
        self._is_read = self._span is not None and self._span.is_recording()
        self._is_open = True

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The answer's status and headers, after they were passed on."""
        if self._is_read:
            self._guarded(self._reading.head, status, headers)

    def take(self, chunk: bytes, at_s: float) -> None:
        """A chunk of the answer's body, after it was passed on; `at_s` is when it came, by `time.perf_counter`."""
        if self._is_read:
            self._guarded(self._reading.take, chunk, at_s)

    def end(self, *, is_whole: bool, status: int | None = None) -> None:
        """Ends the span, once; `status` where the answer did not come from the server."""
        if not self._is_read or not self._is_open:
            return
        self._is_open = False
        self._reading.status = self._reading.status or status
        ended_ns = self._started_ns + int((time.perf_counter() - self._started_s) * 1e9)
        self._guarded(self._state, is_whole)
        if self._reading.unread:
            self._span.set_attribute(PREFIX + "unread", self._reading.unread)
        self._guarded(self._span.end, ended_ns)

    def _state(self, is_whole: bool) -> None:
        self._span.set_attributes(self._reading.attributes(is_whole=is_whole))
        if (self._reading.status or 0) >= 500:
            self._span.set_status(trace.StatusCode.ERROR)

    def _guarded(self, call: Callable[..., None], *args: Any) -> None:
        try:
            call(*args)
        except Exception as error:
            self._reading.unread = f"failed: {type(error).__name__}"
            logger.debug("an answer could not be read", exc_info=True)


class Tap:
    """Opens a span for each exchange that is read; without a tracer everything passes and nothing is read."""

    def __init__(self, tracer: Any = None, paths: Sequence[str] = PATHS) -> None:
        self._tracer, self._paths = tracer, tuple(paths)

    def begin(self, method: str, path: str, headers: Headers) -> Exchange | None:
        """The exchange of a request that generates; None for every other."""
        if self._tracer is None or method != "POST" or not path.rstrip("/").endswith(self._paths):
            return None
        return Exchange(self, path, headers)

    def joined(self, headers: Headers, started_ns: int) -> tuple[Headers, Any]:
        """The headers for the server, and the span (None where the caller wants none)."""
        context, flags = _caller(headers)
        span = self._tracer.start_span(NAME, context=context, kind=trace.SpanKind.SERVER, start_time=started_ns)
        own = span.get_span_context()
        if not own.is_valid or (flags is not None and not span.is_recording()):
            return headers, None
        dropped = (b"traceparent",) if flags is not None else (b"traceparent", b"tracestate")
        said = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags if flags is None else flags:02x}"
        return [*(pair for pair in headers if pair[0].lower() not in dropped), (b"traceparent", said.encode())], span


def _caller(headers: Headers) -> tuple[Any, int | None]:
    """The caller's trace context, and its flags; None where the caller sent none that is valid."""
    parents = [value for name, value in headers if name.lower() == b"traceparent"]
    states = [value.decode("latin-1") for name, value in headers if name.lower() == b"tracestate"]
    if len(parents) != 1:
        return trace.set_span_in_context(trace.INVALID_SPAN), None
    carrier = {"traceparent": parents[0].decode("latin-1"), "tracestate": ",".join(states)}
    context = TraceContextTextMapPropagator().extract(carrier, trace.set_span_in_context(trace.INVALID_SPAN))
    caller = trace.get_current_span(context).get_span_context()
    return context, int(caller.trace_flags) if caller.is_valid else None


def from_environment() -> tuple[Tap, Callable[[], None]]:
    """A tap as the OTEL_* variables say, and what ends it (sends what waits); a warning where it can send nothing."""
    paths = [path.strip() for path in os.environ.get("LEVERWATCH_TAP_PATHS", "").split(",") if path.strip()] or PATHS
    try:
        exporter = _exporter()
    except ImportError as error:
        logger.warning("answers pass through unread: %s", error)
        return Tap(None, paths), lambda: None
    resource = Resource.create()
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "response-tap"}))
    provider = TracerProvider(resource=resource)  # one of our own: the global one is the engine's
    provider.add_span_processor(BatchSpanProcessor(exporter))  # a bounded queue and a thread: an answer waits for nothing
    return Tap(provider.get_tracer(SCOPE), paths), provider.shutdown


def _exporter() -> Any:
    """The OTLP exporter that OTEL_EXPORTER_OTLP_(TRACES_)PROTOCOL names, else the first that is installed.

    Raises:
        ImportError: says what is not installed.
    """
    if MISSING:
        raise ImportError(MISSING)
    of = os.environ.get
    wanted = of("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or of("OTEL_EXPORTER_OTLP_PROTOCOL")
    if wanted and wanted not in EXPORTERS:
        msg = f"OTLP protocol {wanted!r} is unknown; known: {', '.join(EXPORTERS)}"
        raise ImportError(msg)
    endpoint = of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or of("OTEL_EXPORTER_OTLP_ENDPOINT") or ""
    order = sorted(EXPORTERS, reverse=":4318" in endpoint or endpoint.endswith("/v1/traces"))
    problems = []
    for protocol in [wanted] if wanted else order:
        try:
            return importlib.import_module(EXPORTERS[protocol]).OTLPSpanExporter()
        except ImportError as error:
            problems.append(f"{protocol}: {error}")
    msg = f"no OTLP exporter is installed ({'; '.join(problems)})"
    raise ImportError(msg)


class ResponseTap:
    """The ASGI middleware: `app` in, the same app with its answers read out."""

    def __init__(self, app: App, tap: Tap | None = None) -> None:
        self.app = app
        self.tap = tap or from_environment()[0]  # made in the process that serves; the SDK sends what waits at its exit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Runs the app; each message of its answer is sent on first and read then."""
        exchange = self.tap.begin(scope["method"], scope["path"], list(scope["headers"])) if scope["type"] == "http" else None
        if exchange is None:
            await self.app(scope, receive, send)
            return
        is_done = is_gone = False

        async def receiving() -> Message:
            nonlocal is_gone
            message = await receive()
            is_gone |= message["type"] == "http.disconnect" and not is_done
            return message

        async def sending(message: Message) -> None:
            nonlocal is_done
            at_s = time.perf_counter()
            await send(message)
            if message["type"] == "http.response.start":
                exchange.head(message["status"], message.get("headers", ()))
            elif message["type"] == "http.response.body":
                exchange.take(message.get("body", b""), at_s)
                is_done = not message.get("more_body", False)
                if is_done:
                    exchange.end(is_whole=not is_gone)

        try:
            await self.app({**scope, "headers": exchange.headers}, receiving, sending)
        finally:
            exchange.end(is_whole=False)


HEAD_LIMIT, READ_BYTES = 1 << 16, 1 << 16
CONNECT_S, LINGER_S, DRAIN_S = 10.0, 2.0, 30.0
HOP_BY_HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade"))
FRAMING = frozenset((b"content-length", b"transfer-encoding", b"host"))  # no `Connection` header takes these away: the server would misread
HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00\r\n]*?)[ \t]*")
REQUEST = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([^ \x00-\x1f]+) (HTTP/1\.[01])")
SWITCHED = b"101"
ANSWER = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\x00\r\n]*)?")


class Head:
    """The start line and the headers of an HTTP/1 message."""

    def __init__(self, text: bytes, start: re.Pattern[bytes]) -> None:
        self.line, *lines = text.split(b"\r\n")
        matched, pairs = start.fullmatch(self.line), [HEADER.fullmatch(line) for line in lines]
        if matched is None or None in pairs:
            raise MessageError(400, "not an HTTP/1.1 message")
        self.words = matched.groups()
        self.headers = [(pair[1], pair[2]) for pair in pairs if pair]

    def lines(self, name: bytes) -> list[bytes]:
        """What each header of a name says."""
        return [value for key, value in self.headers if key.lower() == name]

    def values(self, name: bytes) -> list[bytes]:
        """The comma-separated values of a header, in lower case."""
        parts = b",".join(self.lines(name)).split(b",")
        return [value for value in (part.strip().lower() for part in parts) if value]

    def written(self, headers: Headers, *more: tuple[bytes, bytes]) -> bytes:
        """The message's head with these headers but those of one hop, and with more of ours."""
        left_out = HOP_BY_HOP | (set(self.values(b"connection")) - FRAMING)
        kept = [pair for pair in headers if pair[0].lower() not in left_out]
        return self._joined([*kept, *more])

    def as_it_came(self) -> bytes:
        """The message's head with all its headers."""
        return self._joined(self.headers)

    def _joined(self, headers: Headers) -> bytes:
        return b"\r\n".join([self.line, *(name + b": " + value for name, value in headers)]) + b"\r\n\r\n"

    def body(self, *, is_answer: bool) -> Length | Chunked:
        """How the body is delimited.

        Raises:
            MessageError: it can be read in two ways, or in none.
        """
        codings, lengths = self.values(b"transfer-encoding"), self.lines(b"content-length")
        if self.lines(b"transfer-encoding"):
            if codings[-1:] != [b"chunked"] or (not is_answer and (lengths or len(codings) > 1 or self.words[-1] != b"HTTP/1.1")):
                raise MessageError(400, "transfer-encoding: chunked alone is taken, of HTTP/1.1 and without content-length")
            return Chunked()
        if lengths:
            said = set(self.values(b"content-length")) if is_answer else lengths  # a server may repeat itself
            length = said.pop() if len(said) == 1 else b""
            if not re.fullmatch(rb"[0-9]{1,18}", length):
                raise MessageError(400, "content-length: one whole number is taken")
            return Length(int(length))
        return Length(None if is_answer else 0)


class Length:
    """A body of so many bytes; of None bytes: one that lasts until its sender closes."""

    def __init__(self, left: int | None) -> None:
        self.left, self.is_done = left, left == 0
        self.ends_at_close = left is None

    def take(self, data: bytes) -> tuple[int, bytes]:
        """How many bytes of the data belong to the body, and what of them is content."""
        if self.left is None:
            return len(data), data
        used = min(self.left, len(data))
        self.left -= used
        self.is_done = not self.left
        return used, data[:used]


class Chunked:
    """A chunked body, found its way through without being changed."""

    ends_at_close = False

    def __init__(self) -> None:
        self.is_done = self._is_trailer = self._is_chunk_end = False
        self._line, self._left = b"", 0

    def take(self, data: bytes) -> tuple[int, bytes]:
        """How many bytes of the data belong to the body, and what of them is content.

        Raises:
            MessageError: this is no chunked body.
        """
        at, content = 0, []
        while at < len(data) and not self.is_done:
            if self._left:
                content.append(data[at : at + self._left])
                at += len(content[-1])
                self._left -= len(content[-1])
                continue
            end = data.find(b"\n", at) + 1
            self._line += data[at:end] if end else data[at:]
            if len(self._line) > HEAD_LIMIT:
                raise MessageError(400, "a chunk's head is too long")
            at = end or len(data)
            if end:
                self._take_line(self._line)
                self._line = b""
        return at, b"".join(content)

    def _take_line(self, ended: bytes) -> None:
        line = ended[:-2]
        if not ended.endswith(b"\r\n") or b"\r" in line or b"\0" in line:  # others end a line there
            raise MessageError(400, "not a chunked body: CR LF ends a line, and stands nowhere else")
        if self._is_trailer:
            self.is_done = not line
            return
        if self._is_chunk_end and not line:
            self._is_chunk_end = False
            return
        size = re.fullmatch(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?", line)
        if size is None or self._is_chunk_end:
            raise MessageError(400, "not a chunked body")
        self._left = int(size[1], 16)
        self._is_trailer, self._is_chunk_end = not self._left, bool(self._left)


class Source:
    """What a peer sends, read head by head and body by body."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader, self.rest = reader, b""

    async def read(self) -> bytes:
        """What has come, once something has; empty at the end."""
        if self.rest:
            data, self.rest = self.rest, b""
            return data
        return await self._reader.read(READ_BYTES)

    async def head(self, start: re.Pattern[bytes]) -> Head | None:
        """The next message's head; None where the peer closed before one."""
        data = b""
        while True:
            data = (data + await self._more(bool(data))).lstrip(b"\r\n")
            text, mark, rest = data.partition(b"\r\n\r\n")
            if len(text) > HEAD_LIMIT:
                raise MessageError(431, f"a head of at most {HEAD_LIMIT} bytes is taken")
            if mark:
                self.rest = rest
                return Head(text, start)
            if not data and self._reader.at_eof():
                return None

    async def skip(self) -> None:
        """Reads to the end and keeps nothing."""
        while await self.read():
            pass

    async def _more(self, is_begun: bool) -> bytes:
        data = await self.read()
        if not data and is_begun:
            msg = "closed within a head"
            raise ConnectionError(msg)
        return data

    async def relay(self, body: Length | Chunked, writer: asyncio.StreamWriter, see: Callable[[bytes, float], None] | None = None) -> None:
        """Passes a body on as it comes, byte for byte; `see` gets its content after that.

        Raises:
            ConnectionError: a peer closed within the body.
            MessageError: it is not the body that its head says.
        """
        while not body.is_done:
            data = await self.read()
            at_s = time.perf_counter()
            if not data:
                if body.ends_at_close:
                    return
                msg = "closed within a body"
                raise ConnectionError(msg)
            used, content = body.take(data)
            writer.write(data[:used])
            self.rest = data[used:]
            if see is not None:
                see(content, at_s)
            await writer.drain()


class Caller(asyncio.StreamReaderProtocol):
    """A client's connection that says when the client has gone."""

    def __init__(self, proxy: Proxy) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(asyncio.StreamReader(limit=HEAD_LIMIT, loop=loop), self._serve, loop=loop)
        self.gone, self.is_answered = asyncio.Event(), False
        self._proxy = proxy

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # the proxy ends; asyncio would report it as a fault until Python 3.12
            await self._proxy.serve(Source(reader), writer, self)

    def eof_received(self) -> bool | None:
        """The client sends no more; a client that closes one way only is taken as gone, as by the engines' own servers."""
        self.gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        self.gone.set()
        super().connection_lost(exc)


class Proxy:
    """Passes HTTP/1.1 requests to one server and its answers back, and reads the answers. A connection to the server per request."""

    def __init__(self, tap: Tap, upstream: str) -> None:
        url = urlsplit(upstream)
        if url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/") or url.query:
            msg = f"upstream {upstream!r}: an address such as http://127.0.0.1:8000 is taken"
            raise ValueError(msg)
        self._tap, self._host = tap, url.hostname
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if url.scheme == "https" else None
        self._netloc = url.netloc.rpartition("@")[2].encode()
        self.open_exchanges = 0

    async def serve(self, source: Source, writer: asyncio.StreamWriter, caller: Caller) -> None:
        """Answers a client's requests, one after the other, until one of the two has enough."""
        try:
            while await self._answered(source, writer, caller):
                pass
        except MessageError as error:
            await _refuse(source, writer, caller, error)
        except OSError:
            writer.transport.abort()  # a cut answer must not look whole
        finally:
            writer.close()

    async def _answered(self, source: Source, writer: asyncio.StreamWriter, caller: Caller) -> bool:
        caller.is_answered = False
        request = await source.head(REQUEST)
        if request is None or caller.gone.is_set():
            return False
        method, target = (word.decode("latin-1") for word in request.words[:2])
        if method == "CONNECT":
            raise MessageError(501, "CONNECT is not taken")
        body = request.body(is_answer=False)
        self.open_exchanges += 1
        exchange = self._tap.begin(method, urlsplit(target).path, request.headers)
        try:
            async with self._connected() as (up_source, up_writer):
                if _asks_for_websocket(request):
                    await _upgraded(request, source, writer, caller, up_source, up_writer)
                    return False
                headers = exchange.headers if exchange else request.headers
                up_writer.write(request.written(self._addressed(headers), (b"Connection", b"close")))
                upload = source.relay(body, up_writer)
                download = _download(up_source, writer, caller, exchange, request)
                return await _both(upload, download, caller.gone) and body.is_done
        except _UnreachableError as error:
            if exchange:
                exchange.end(is_whole=True, status=502)
            raise MessageError(502, str(error)) from error
        finally:
            self.open_exchanges -= 1
            if exchange:
                exchange.end(is_whole=False)

    def _addressed(self, headers: Headers) -> Headers:
        """The caller's Host stays, but for a server behind TLS, which is found by its name."""
        if self._tls is None:
            return headers
        return [*(pair for pair in headers if pair[0].lower() != b"host"), (b"Host", self._netloc)]

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[Source, asyncio.StreamWriter]]:
        opening = asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=HEAD_LIMIT)
        try:
            reader, writer = await asyncio.wait_for(opening, CONNECT_S)
        except (OSError, asyncio.TimeoutError) as error:  # noqa: UP041  # two classes until Python 3.11
            msg = f"{self._host}:{self._port} cannot be reached: {error or 'no answer'}"
            raise _UnreachableError(msg) from error
        try:
            yield Source(reader), writer
        finally:
            writer.transport.abort()


async def _download(source: Source, writer: asyncio.StreamWriter, caller: Caller, exchange: Exchange | None, request: Head) -> bool:
    """Passes the answer on; whether the client's connection may be used again."""
    answer, body = await _answer(source, writer, has_body=request.words[0] != b"HEAD")
    if answer.words[0] == SWITCHED:
        msg = "the server changed protocols unasked"
        raise _UnreachableError(msg)
    stays = b"close" not in request.values(b"connection") and not body.ends_at_close
    stays = stays and request.words[2] == b"HTTP/1.1" and answer.line.startswith(b"HTTP/1.1")
    caller.is_answered = True
    writer.write(answer.written(_framed_once(answer), *([] if stays else [(b"Connection", b"close")])))
    if exchange is not None:
        exchange.head(int(answer.words[0]), answer.headers)
    await source.relay(body, writer, exchange.take if exchange else None)
    if exchange is not None:
        exchange.end(is_whole=True)
    await writer.drain()
    return stays


async def _answer(source: Source, writer: asyncio.StreamWriter, *, has_body: bool) -> tuple[Head, Length | Chunked]:
    """The head of the server's answer, and how its body is delimited; what comes before it (100 Continue) is passed on.

    Raises:
        _UnreachableError: there is none, or none that can be read.
    """
    try:
        answer = await source.head(ANSWER)
        while answer is not None and answer.words[0].startswith(b"1") and answer.words[0] != SWITCHED:
            writer.write(answer.written(answer.headers))
            answer = await source.head(ANSWER)
        if answer is not None:
            has_body = has_body and answer.words[0] not in (SWITCHED, b"204", b"304")
            return answer, answer.body(is_answer=True) if has_body else Length(0)
    except (OSError, MessageError) as error:
        msg = f"the server's answer cannot be read: {error}"
        raise _UnreachableError(msg) from error
    msg = "the server closed without an answer"
    raise _UnreachableError(msg)


def _framed_once(answer: Head) -> Headers:
    """The answer's headers without a length where it is chunked: a client might go by either."""
    if not answer.lines(b"transfer-encoding"):
        return answer.headers
    return [pair for pair in answer.headers if pair[0].lower() != b"content-length"]


async def _both(upload: Awaitable[None], download: Awaitable[bool], gone: asyncio.Event) -> bool:
    """Runs both ways until the answer is through or the client has gone; what runs then is ended.

    Raises:
        ConnectionError: the client went, or the server cut its answer.
        MessageError: the request's body is no body.
    """
    tasks = up, down, left = asyncio.ensure_future(upload), asyncio.ensure_future(download), asyncio.ensure_future(gone.wait())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if up.done() and not isinstance(up.exception(), MessageError):  # the server may answer without reading all of the body
            await asyncio.wait((down, left), return_when=asyncio.FIRST_COMPLETED)
        if down.done():
            return down.result()
        if up.done() and up.exception() is not None:
            await up
        msg = "the client has gone"
        raise ConnectionAbortedError(msg)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _asks_for_websocket(request: Head) -> bool:
    """Whether a request wants to change protocols, as HTTP/1.1 has it. Any other `Upgrade` ends at the proxy."""
    is_asked = b"websocket" in request.values(b"upgrade") and b"upgrade" in request.values(b"connection")
    return is_asked and request.words[0] == b"GET" and request.words[2] == b"HTTP/1.1"


async def _upgraded(
    request: Head, source: Source, writer: asyncio.StreamWriter, caller: Caller, up_source: Source, up_writer: asyncio.StreamWriter
) -> None:
    """A websocket: nothing behind the request goes on before the server has agreed, then bytes both ways until one side closes.

    Raises:
        MessageError: the request has a body.
    """
    if not request.body(is_answer=False).is_done:
        raise MessageError(400, "a request for a websocket has no body")
    up_writer.write(request.as_it_came())

    async def download() -> bool:
        answer, body = await _answer(up_source, writer, has_body=True)
        caller.is_answered, is_agreed = True, answer.words[0] == SWITCHED
        if is_agreed:
            writer.write(answer.as_it_came())
        else:
            writer.write(answer.written(_framed_once(answer), (b"Connection", b"close")))
            await up_source.relay(body, writer)
        await writer.drain()
        return is_agreed

    if await _both(up_writer.drain(), download(), caller.gone):
        await _tunnel(source, writer, up_source, up_writer)


async def _tunnel(source: Source, writer: asyncio.StreamWriter, up_source: Source, up_writer: asyncio.StreamWriter) -> None:
    """Bytes both ways, unread, until one side closes."""
    ways = source.relay(Length(None), up_writer), up_source.relay(Length(None), writer)
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _refuse(source: Source, writer: asyncio.StreamWriter, caller: Caller, error: MessageError) -> None:
    """An answer of our own in the form of the OpenAI API's errors; where one has begun, the connection is cut."""
    if caller.is_answered:
        writer.transport.abort()
        return
    reasons = {400: "Bad Request", 431: "Request Header Fields Too Large", 501: "Not Implemented", 502: "Bad Gateway"}
    body = json.dumps({"error": {"message": f"response_tap: {error}", "type": "proxy_error", "code": error.status}}).encode()
    head = f"HTTP/1.1 {error.status} {reasons[error.status]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    with contextlib.suppress(OSError):
        writer.write_eof()
        rest = asyncio.ensure_future(source.skip())  # closing on unread bytes would take the answer back
        await asyncio.wait((rest,), timeout=LINGER_S)
        rest.cancel()


async def run(upstream: str, host: str, port: int, tap: Tap, ready: Callable[[int], None] = lambda _: None) -> None:
    """Serves until SIGTERM or SIGINT, then lets open answers end for up to 30 s; `ready` is told the port."""
    proxy, loop, stop = Proxy(tap, upstream), asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(lambda: Caller(proxy), host, port)
    ready(server.sockets[0].getsockname()[1])
    await stop.wait()
    server.close()
    until_s = loop.time() + DRAIN_S
    while proxy.open_exchanges and loop.time() < until_s:
        await asyncio.sleep(0.05)


def main(argv: Sequence[str] | None = None) -> int:
    """The proxy as a command."""
    parser = argparse.ArgumentParser(description="A reverse proxy that reads what only an answer's body says, and sends it as spans.")
    parser.add_argument("--upstream", required=True, metavar="URL", help="the server, such as http://127.0.0.1:8000")
    parser.add_argument("--listen", default="127.0.0.1:8100", metavar="HOST:PORT", help="where to listen (default: %(default)s)")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    host, _, port = args.listen.rpartition(":")
    tap, shutdown = from_environment()
    told = "listening on %s:%d, in front of %s"
    try:
        asyncio.run(run(args.upstream, host.strip("[]"), int(port), tap, lambda at: logger.info(told, host, at, args.upstream)))
    except (OSError, ValueError) as error:
        logger.error("%s", error)
        return 2
    finally:
        shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
