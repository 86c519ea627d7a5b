"""The response tap in front of an engine: a request record in, the span that tells what only the answer's body says out.

Answers are not streamed. The span is a child of the client's, which nobody exports, and the engine's span is its child. The tap runs
inside vLLM and beside other engines, in the environment of the worker that answers, whose facts it states but for the pool: it is in front
of both workers of a pair. What the engine tells twice, the tap saw once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from demo.engines import sglang, vllm, vllm_body, wire
from demo.records import Deployment, Request

NAME = "response_body"
SCOPE = "leverwatch.response_tap"
HOP_NS = 1_000_000
"""Each way through the proxy."""
OPENAI, NATIVE = "/v1/chat/completions", "/generate"
BYTES = 950
"""Of a body without its text and its numbers."""
BYTES_PER_TOKEN = 4

ATTRIBUTES: dict[str, wire.Kind] = {
    "leverwatch.body.path": "string",
    "leverwatch.body.bytes": "int",
    "leverwatch.body.is_streamed": "bool",
    "leverwatch.body.status_code": "int",
    "leverwatch.body.outcome": "string",
    "leverwatch.body.request_id": "string",
    "leverwatch.body.model": "string",
    "leverwatch.body.finish_reason": "string",
    "leverwatch.body.prompt_tokens": "int",
    "leverwatch.body.cached_tokens": "int",
    "leverwatch.body.output_tokens": "int",
    "leverwatch.body.draft_tokens": "int",
    "leverwatch.body.accepted_tokens": "int",
    "leverwatch.body.verify_steps": "int",
    "leverwatch.body.acceptance_histogram": "string",
    "leverwatch.body.accepted_by_position": "string",
    "leverwatch.body.queue_s": "double",
    "leverwatch.body.decode_s": "double",
}
UNSAID: tuple[wire.Value, ...] = (None,) * 13
"""Of an answer that has no body, or an error's."""


class Emitter:
    """Emits what the tap reads from the answers of vLLM, SGLang and TensorRT-LLM."""

    def __init__(self) -> None:
        self._form = wire.SpanForm(wire.SERVER, ATTRIBUTES)
        self._failed = wire.SpanForm(wire.SERVER, ATTRIBUTES, failed=True)
        self._sources: dict[Deployment, wire.Source] = {}

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """The request's span."""
        if request.attempt > wire.TOLD_AGAIN:
            return
        ended_ns = vllm.end_ns(request) + HOP_NS
        form = self._failed if request.outcome == "error" else self._form
        span = form.encode(
            name=NAME,
            trace_id=request.trace_id,
            span_id=wire.caller(request),
            parent=wire.span_id(request.trace_id, "client"),
            flags=wire.REMOTE_PARENT,
            started_ns=request.started_ns - HOP_NS,
            ended_ns=ended_ns,
            values=_values(request),
        )
        yield wire.Emitted(ended_ns, self._source(request.at), span)

    def _source(self, at: Deployment) -> wire.Source:
        if at not in self._sources:
            facts = wire.facts(at)
            facts.pop("leverwatch.pool", None)
            service = "vllm" if at.engine == "vllm" else "response-tap"
            self._sources[at] = wire.Source(tuple({**wire.sdk(service, at.replica), **facts}.items()), SCOPE)
        return self._sources[at]


class _Body(NamedTuple):
    """What an engine's answer has of its own; the drafts of a request are in it, or are not."""

    path: str
    request_id: str
    model: str | None
    has_drafts: bool = False
    queue_s: float | None = None
    decode_s: float | None = None


def _of_vllm(request: Request) -> _Body:
    leg = vllm.legs(request)[-1]
    return _Body(OPENAI, vllm.request_id(request), request.at.model, True, leg.queue_s, leg.decode_s)


def _of_sglang(request: Request) -> _Body:
    return _Body(NATIVE, sglang.request_id(request), None, True, request.queue_s)


def _of_trtllm(request: Request) -> _Body:
    return _Body(OPENAI, vllm.request_id(request), request.at.model)


BODIES: Mapping[str, Callable[[Request], _Body]] = MappingProxyType({"vllm": _of_vllm, "sglang": _of_sglang, "trtllm": _of_trtllm})


def _values(request: Request) -> tuple[wire.Value, ...]:
    body = BODIES[request.at.engine](request)
    if request.outcome == "aborted":  # no header came either
        return (body.path, 0, False, None, "aborted", *UNSAID)
    if request.outcome == "error":
        return (body.path, BYTES // 10, False, vllm_body.ERROR_STATUS, "error", *UNSAID)
    return (
        body.path,
        BYTES + BYTES_PER_TOKEN * request.output_tokens,
        False,
        200,
        None,
        body.request_id,
        body.model,
        request.finish_reason,
        request.prompt_tokens,
        request.cached_tokens,
        request.output_tokens,
        *(_drafts(request) if body.has_drafts else (None,) * 5),
        body.queue_s,
        body.decode_s,
    )


def _drafts(request: Request) -> tuple[wire.Value, ...]:
    """Counts of speculation, and its two lists as JSON text; nothing without a verify step."""
    if not request.verify_steps:
        return (None,) * 5
    counts = (request.draft_tokens, request.accepted_tokens, request.verify_steps)
    if request.accepted_by_position is None:
        return (*counts, None, None)
    return (*counts, str(vllm_body.acceptance_histogram(request)), str(list(request.accepted_by_position)))
