"""The response tap in front of vLLM: a request record in, the span that tells what only the response body says out.

It is the trace's root and the engine's span is its child, as for a proxy that reads the body it passes on.
"""

from __future__ import annotations

from collections.abc import Iterator

from demo.engines import vllm, wire
from demo.records import Request

NAME = "response_body"
SCOPE = "leverwatch.response_tap"
HOP_NS = 1_000_000
"""Each way through the proxy."""

ATTRIBUTES: dict[str, wire.Kind] = {
    "leverwatch.body.request_id": "string",
    "leverwatch.body.prompt_tokens": "int",
    "leverwatch.body.cached_tokens": "int",
    "leverwatch.body.output_tokens": "int",
    "leverwatch.body.draft_tokens": "int",
    "leverwatch.body.accepted_tokens": "int",
    "leverwatch.body.verify_steps": "int",
    "leverwatch.body.finish_reason": "string",
}


class Emitter:
    """Emits what the tap reads from the answers of vLLM replicas."""

    def __init__(self) -> None:
        self._form = wire.SpanForm(wire.SERVER, ATTRIBUTES)
        self._source = wire.Source(tuple(wire.sdk("response-tap", None).items()), SCOPE)

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """The request's span."""
        ended_ns = vllm.end_ns(request) + HOP_NS
        span = self._form.encode(
            name=NAME,
            trace_id=request.trace_id,
            span_id=request.parent_span_id,
            parent=b"",
            flags=wire.LOCAL_PARENT,
            started_ns=request.started_ns - HOP_NS,
            ended_ns=ended_ns,
            values=_values(request),
        )
        yield wire.Emitted(ended_ns, self._source, span)


def _values(request: Request) -> tuple[wire.Value, ...]:
    return (
        vllm.request_id(request),
        request.prompt_tokens,
        request.cached_tokens,
        request.output_tokens,
        request.draft_tokens,
        request.accepted_tokens,
        request.verify_steps,
        request.finish_reason,
    )
