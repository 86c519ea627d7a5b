"""vLLM 0.32: a request record in, its one `llm_request` span out, as the front end sends it when the last token is out."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from demo.engines import wire
from demo.records import Request

NAME = "llm_request"
SCOPE = "vllm.tracing.otel"
CLOSING_NS = 1_000_000
"""From the last output to the span's end."""

ATTRIBUTES: dict[str, wire.Kind] = {
    "gen_ai.latency.time_to_first_token": "double",
    "gen_ai.latency.e2e": "double",
    "gen_ai.latency.time_in_queue": "double",
    "gen_ai.usage.prompt_tokens": "int",
    "gen_ai.usage.completion_tokens": "int",
    "gen_ai.latency.time_in_model_prefill": "double",
    "gen_ai.latency.time_in_model_decode": "double",
    "gen_ai.latency.time_in_model_inference": "double",
    "gen_ai.request.id": "string",
    "gen_ai.request.top_p": "double",
    "gen_ai.request.max_tokens": "int",
    "gen_ai.request.temperature": "double",
    "gen_ai.request.n": "int",
    "leverwatch.arm.speculation": "string",
}


class Emitter:
    """Emits the requests of a fleet's vLLM replicas."""

    def __init__(self) -> None:
        self._form = wire.SpanForm(wire.SERVER, ATTRIBUTES)
        self._sources: dict[str, wire.Source] = {}

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """The request's span."""
        ended_ns = end_ns(request)
        span = self._form.encode(
            name=NAME,
            trace_id=request.trace_id,
            span_id=wire.span_id(request.trace_id, NAME),
            parent=request.parent_span_id,
            flags=wire.REMOTE_PARENT,
            started_ns=request.started_ns,
            ended_ns=ended_ns,
            values=_values(request),
        )
        yield wire.Emitted(ended_ns, self._source(request), span)

    def _source(self, request: Request) -> wire.Source:
        if request.replica not in self._sources:
            process = str(1000 + zlib.crc32(request.replica.encode()) % 60000)
            front_end = {"vllm.instrumenting_module_name": "vllm.llm_engine", "vllm.process_id": process}
            resource = {**wire.sdk("vllm", request.replica), **front_end, **wire.facts(request)}
            self._sources[request.replica] = wire.Source(tuple(resource.items()), SCOPE)
        return self._sources[request.replica]


def request_id(request: Request) -> str:
    """The id under which vLLM answers the request."""
    return f"chatcmpl-{request.trace_id[:8].hex()}"


def end_ns(request: Request) -> int:
    """When the span ends, in Unix nanoseconds."""
    return request.started_ns + int(request.e2e_s * wire.NS) + CLOSING_NS


def _values(request: Request) -> tuple[wire.Value, ...]:
    return (
        request.ttft_s,
        request.e2e_s,
        request.queue_s,
        request.prompt_tokens,
        request.output_tokens,
        request.prefill_s,
        request.decode_s,
        request.prefill_s + request.decode_s,
        request_id(request),
        request.top_p,
        request.max_tokens,
        request.temperature or None,  # vLLM leaves out what is falsy
        1,
        request.speculation_arm,
    )
