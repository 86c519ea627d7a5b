"""TensorRT-LLM of 2026: a request record in, its `llm_request` span out; of a split one, both servers' and the proxy's above them.

A server speaks of requests that completed; of one that did not, the proxy's span alone says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from demo.engines import trtllm_legs, wire
from demo.engines.trtllm_legs import Leg
from demo.records import Deployment, Request

NAME, PROXY_NAME = "llm_request", "openai_chat"
SCOPE = "trt.llm"
SERVICES = {"unified": "trtllm", "prefill": "trtllm-ctx", "decode": "trtllm-gen"}
PROXY_SERVICE = "trtllm-disagg-proxy"
PICKED_NS = 200_000
"""From a server picked to its executor's taking the request."""

ATTRIBUTES: dict[str, wire.Kind] = {
    "gen_ai.usage.completion_tokens": "int",
    "gen_ai.usage.prompt_tokens": "int",
    "gen_ai.request.max_tokens": "int",
    "gen_ai.request.top_p": "double",
    "gen_ai.request.temperature": "double",
    "gen_ai.request.id": "string",
    "gen_ai.request.n": "int",
    "gen_ai.latency.time_to_first_token": "double",
    "gen_ai.latency.e2e": "double",
    "gen_ai.latency.time_in_queue": "double",
    "gen_ai.response.finish_reasons": "string",
    "gen_ai.latency.kv_cache_transfer_time": "double",
}


class Emitter:
    """Emits the requests of a fleet's TensorRT-LLM servers."""

    def __init__(self) -> None:
        self._form = wire.SpanForm(wire.SERVER, ATTRIBUTES)
        self._ok, self._failed = wire.SpanForm(wire.SERVER, {}, ok=True), wire.SpanForm(wire.SERVER, {}, failed=True)
        self._sources: dict[Deployment, wire.Source] = {}
        self._proxy = wire.Source(tuple(wire.sdk(PROXY_SERVICE, None).items()), SCOPE)

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """The request's span, or the three of a split one."""
        legs = trtllm_legs.legs(request)
        parent = wire.caller(request)
        if len(legs) > 1:
            first_told = request._replace(attempt=request.attempt % wire.TOLD_AGAIN)
            if request == first_told:  # what is told again is what the servers say
                yield self._above(request, legs, parent)
            parent = _id(first_told, "proxy")
        if request.outcome == "ok":
            for leg in legs:
                yield self._worker(request, leg, parent)

    def _worker(self, request: Request, leg: Leg, parent: bytes) -> wire.Emitted:
        span = self._form.encode(
            name=NAME,
            trace_id=request.trace_id,
            span_id=_id(request, leg.phase),
            parent=parent,
            flags=wire.REMOTE_PARENT,
            started_ns=leg.arrived_ns,
            ended_ns=leg.ended_ns,
            values=_values(request, leg),
            events=_transfer(request, leg) if leg.phase == "generation" else (),
        )
        return wire.Emitted(leg.ended_ns, self._source(leg.at), span)

    def _above(self, request: Request, legs: tuple[Leg, ...], parent: bytes) -> wire.Emitted:
        names = ("ctx_server.selected", "gen_server.selected")
        picked = [
            wire.Event(name, leg.arrived_ns - PICKED_NS, (("server", leg.at.replica),)) for name, leg in zip(names, legs, strict=True)
        ]
        form = self._ok if request.outcome == "ok" else self._failed
        span = form.encode(
            name=PROXY_NAME,
            trace_id=request.trace_id,
            span_id=_id(request, "proxy"),
            parent=parent,
            flags=wire.REMOTE_PARENT,
            started_ns=request.started_ns,
            ended_ns=request.ended_ns,
            events=picked,
        )
        return wire.Emitted(request.ended_ns, self._proxy, span)

    def _source(self, at: Deployment) -> wire.Source:
        if at not in self._sources:
            resource = {**wire.sdk(SERVICES[at.role], at.replica), **wire.facts(at)}
            self._sources[at] = wire.Source(tuple(resource.items()), SCOPE)
        return self._sources[at]


def _values(request: Request, leg: Leg) -> tuple[wire.Value, ...]:
    return (
        leg.output_tokens,
        request.prompt_tokens,
        request.max_tokens,
        request.top_p,
        request.temperature,
        str(trtllm_legs.request_id(request, leg.at)),
        1,
        leg.ttft_s,
        leg.last_token_s,
        leg.queue_s,
        json.dumps([leg.finish_reason]),
        trtllm_legs.moved_s(request) if leg.phase == "generation" else None,
    )


def _transfer(request: Request, leg: Leg) -> tuple[wire.Event, ...]:
    """The state comes once there is room for it."""
    since_ns = leg.arrived_ns + round(leg.scheduled_s * wire.NS)
    until_ns = since_ns + round(trtllm_legs.moved_s(request) * wire.NS)
    return wire.Event("kv_cache_transfer_start", since_ns), wire.Event("kv_cache_transfer_end", until_ns)


def _id(request: Request, role: str) -> bytes:
    return wire.span_id(request.trace_id, f"{role} {request.attempt}")
