"""The two legs of a request through SGLang with prefill and decode apart: a request record in, stages with their times out."""

from __future__ import annotations

from dataclasses import dataclass

from demo.records import Request

NS = 1_000_000_000
DISPATCH_SHARE = 0.15
HANDOVER_S = 0.0004
PREPARE_S = 0.001
BOOTSTRAP_S = 0.0025
DECODE_WAITING_S = 0.002
RETURN_S = 0.0008
"""From a token's step to the tokenizer process that passes it on."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a leg, in Unix nanoseconds."""

    name: str
    started_ns: int
    ended_ns: int


@dataclass(frozen=True, slots=True)
class Leg:
    """One worker's part of a request: the stages of its two processes, and when the first and the last token were passed on."""

    role: str
    output_tokens: int
    tokenizer: tuple[Stage, ...]
    scheduler: tuple[Stage, ...]
    first_token_ns: int
    ended_ns: int

    @property
    def started_ns(self) -> int:
        """When the worker got the request."""
        return self.tokenizer[0].started_ns

    @property
    def dispatched_ns(self) -> int:
        """When its tokenizer had handed it to its scheduler."""
        return self.tokenizer[-1].ended_ns


def prefill(request: Request) -> Leg:
    """The leg that reads the prompt; it gives one token and ends when the cache has moved."""
    moving = ("prefill_transfer_kv_cache", request.kv_transfer_s or 0.0)
    stages = (("prefill_prepare", PREPARE_S), ("prefill_bootstrap", BOOTSTRAP_S), ("prefill_waiting", request.queue_s))
    tokenizer, scheduler = _stages(request, (*stages, ("prefill_forward", request.prefill_s), moving))
    return Leg("prefill", 1, tokenizer, scheduler, _later(scheduler[-2].ended_ns, RETURN_S), _later(scheduler[-1].ended_ns, RETURN_S))


def decode(request: Request) -> Leg:
    """The leg that gives the answer; it starts with the other one and waits for the cache."""
    waited_s = request.queue_s + request.prefill_s + (request.kv_transfer_s or 0.0)
    stages = (("decode_prepare", PREPARE_S), ("decode_bootstrap", BOOTSTRAP_S), ("decode_transferred", waited_s))
    tokenizer, scheduler = _stages(request, (*stages, ("decode_waiting", DECODE_WAITING_S), ("decode_forward", request.decode_s)))
    ended_ns = _later(scheduler[-1].ended_ns, RETURN_S)
    return Leg("decode", request.output_tokens, tokenizer, scheduler, _later(scheduler[-1].started_ns, RETURN_S), ended_ns)


def _stages(request: Request, scheduled: tuple[tuple[str, float], ...]) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    dispatch_s = request.frontend_s * DISPATCH_SHARE
    tokenizer = _chain(request.started_ns, (("tokenize", request.frontend_s - dispatch_s), ("api_server_dispatch", dispatch_s)))
    return tokenizer, _chain(_later(tokenizer[-1].ended_ns, HANDOVER_S), scheduled)


def _chain(at_ns: int, stages: tuple[tuple[str, float], ...]) -> tuple[Stage, ...]:
    chain = []
    for name, seconds in stages:
        chain.append(Stage(name, at_ns, _later(at_ns, seconds)))
        at_ns = chain[-1].ended_ns
    return tuple(chain)


def _later(at_ns: int, seconds: float) -> int:
    return at_ns + int(seconds * NS)
