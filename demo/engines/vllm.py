"""vLLM 0.32: a request record in, its `llm_request` span out, as the front end sends it when the last token is out.

Where another worker read the prompt there are two: that worker was asked for one token, and the other one for the whole answer. Of a
request that was refused, or whose client went away, vLLM says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from demo.engines import wire
from demo.records import Deployment, Request

NAME = "llm_request"
SCOPE = "vllm.tracing.otel"
CLOSING_NS = 1_000_000
"""From the last output to the span's end."""
PREFILL_CLOSING_NS = 200_000
HANDOVER_S = 0.0005
"""From one worker's answer to the other's request."""
FIRST_STEP_S = 0.002
"""The step that computes the last prompt token anew once its state has come."""

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
}


class Leg(NamedTuple):
    """One worker's part of a request, seconds from `started_ns` on."""

    at: Deployment
    started_ns: int
    closing_ns: int
    ttft_s: float
    e2e_s: float
    queue_s: float
    prefill_s: float
    decode_s: float
    output_tokens: int
    max_tokens: int


class Emitter:
    """Emits the requests of a fleet's vLLM replicas."""

    def __init__(self) -> None:
        self._form = wire.SpanForm(wire.SERVER, ATTRIBUTES)
        self._sources: dict[Deployment, wire.Source] = {}

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """The request's span, or those of its two legs."""
        if request.outcome != "ok":
            return
        for leg in legs(request):
            ended_ns = leg.started_ns + int(leg.e2e_s * wire.NS) + leg.closing_ns
            span = self._form.encode(
                name=NAME,
                trace_id=request.trace_id,
                span_id=wire.span_id(request.trace_id, f"{NAME} {leg.at.role} {request.attempt}"),
                parent=wire.caller(request),
                flags=wire.REMOTE_PARENT,
                started_ns=leg.started_ns,
                ended_ns=ended_ns,
                values=_values(request, leg),
            )
            yield wire.Emitted(ended_ns, self._source(leg.at), span)

    def _source(self, at: Deployment) -> wire.Source:
        if at not in self._sources:
            front_end = {"vllm.instrumenting_module_name": "vllm.llm_engine", "vllm.process_id": str(at.process_id)}
            resource = {**wire.sdk("vllm", at.replica), **front_end, **wire.facts(at)}
            self._sources[at] = wire.Source(tuple(resource.items()), SCOPE)
        return self._sources[at]


def legs(request: Request) -> tuple[Leg, ...]:
    """The parts of a request that its workers saw: one, or that of the worker that read the prompt and that of the other."""
    one = Leg(
        request.at,
        request.started_ns,
        CLOSING_NS,
        request.ttft_s,
        request.e2e_s,
        request.queue_s,
        request.prefill_s,
        request.decode_s,
        request.output_tokens,
        request.max_tokens,
    )
    if request.prefill_at is None:
        return (one,)
    read_s, moving_s = request.frontend_s + max(request.queue_s, 0.0) + request.prefill_s, request.kv_transfer_s or 0.0
    prefill = one._replace(
        at=request.prefill_at, closing_ns=PREFILL_CLOSING_NS, ttft_s=read_s, e2e_s=read_s, decode_s=0.0, output_tokens=1, max_tokens=1
    )
    called_s = read_s + min(HANDOVER_S, moving_s / 2)
    step_s = min(FIRST_STEP_S, moving_s / 4)
    decode = one._replace(
        started_ns=request.started_ns + int(called_s * wire.NS),
        ttft_s=request.ttft_s - called_s,
        e2e_s=request.e2e_s - called_s,
        queue_s=read_s + moving_s - called_s - step_s,
        prefill_s=step_s,
    )
    return prefill, decode


def request_id(request: Request) -> str:
    """The id under which vLLM answers the request."""
    return f"chatcmpl-{request.request_key.hex()}"


def end_ns(request: Request) -> int:
    """When the last span ends, in Unix nanoseconds."""
    return request.started_ns + int(request.e2e_s * wire.NS) + CLOSING_NS


def _values(request: Request, leg: Leg) -> tuple[wire.Value, ...]:
    return (
        leg.ttft_s,
        leg.e2e_s,
        leg.queue_s,
        request.prompt_tokens,
        leg.output_tokens,
        leg.prefill_s,
        leg.decode_s,
        leg.prefill_s + leg.decode_s,
        request_id(request),
        request.top_p,
        leg.max_tokens,
        request.temperature or None,  # vLLM leaves out what is falsy
        1,
    )
