"""A request through SGLang's workers: a request record in, its legs out, each with the stages of its two processes and their times.

One worker takes a request all the way, or one reads the prompt and another gives the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from demo.records import Deployment, Request

NS = 1_000_000_000
TOKENIZE, DISPATCH, HANDOVER, PROCESS = 0.5, 0.1, 0.1, 0.2
"""Shares of the front end's time before the first forward pass; the rest is from the first token's step back to the front end."""
FIRST_WAIT_S = 0.0003
"""From the end of a prompt's forward pass to the first one that decodes."""
DECODE_WAIT_S = 0.002
"""The same on a worker that got the prompt's state from another one; at most half of the time that the state took."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a leg, in Unix nanoseconds."""

    name: str
    started_ns: int
    ended_ns: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_ns - self.started_ns) / NS


@dataclass(frozen=True, slots=True)
class Leg:
    """One worker's part of a request: the stages of its two processes, and when the first and the last token were passed on.

    `ttft_s` is what the worker says of its first token, `batch` how many were in its first forward pass.
    """

    role: str
    at: Deployment
    output_tokens: int
    batch: int
    tokenizer: tuple[Stage, ...]
    scheduler: tuple[Stage, ...]
    ttft_s: float
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


def legs(request: Request) -> tuple[Leg, ...]:
    """The parts of a request, in the order of its way. A wait that is said to be -1, which is not known, is laid out as none."""
    request = request._replace(queue_s=max(request.queue_s, 0.0))
    return (_unified(request),) if request.prefill_at is None else (_prefill(request, request.prefill_at), _decode(request))


def _unified(request: Request) -> Leg:
    decoding_s = max(0.0, request.decode_s - FIRST_WAIT_S)
    waits = (("request_process", request.frontend_s * PROCESS), ("prefill_waiting", request.queue_s))
    runs = (("prefill_forward", request.prefill_s), ("decode_waiting", request.decode_s - decoding_s), ("decode_forward", decoding_s))
    tokenizer, scheduler = _stages(request, (*waits, *runs))
    first_ns = _later(request.started_ns, request.frontend_s + request.queue_s + request.prefill_s)
    ended_ns = _later(first_ns, request.decode_s)
    return Leg("", request.at, request.output_tokens, request.batch + 1, tokenizer, scheduler, request.ttft_s, first_ns, ended_ns)


def _prefill(request: Request, at: Deployment) -> Leg:
    """The leg that reads the prompt; it gives one token and ends when the state has moved."""
    moving = ("prefill_transfer_kv_cache", request.kv_transfer_s or 0.0)
    preparing_s = request.frontend_s * PROCESS / 2
    waits = (("prefill_prepare", preparing_s), ("prefill_bootstrap", preparing_s), ("prefill_waiting", request.queue_s))
    tokenizer, scheduler = _stages(request, (*waits, ("prefill_forward", request.prefill_s), moving))
    read_s = request.frontend_s + request.queue_s + request.prefill_s
    first_ns = _later(request.started_ns, read_s)
    return Leg("prefill", at, 1, 1, tokenizer, scheduler, read_s, first_ns, max(first_ns, scheduler[-1].ended_ns))


def _decode(request: Request) -> Leg:
    """The leg that gives the answer; it starts with the other one and waits for the state."""
    moving_s = request.kv_transfer_s or 0.0
    wait_s = min(DECODE_WAIT_S, moving_s / 2)
    preparing_s = request.frontend_s * PROCESS / 2
    moved_s = request.queue_s + request.prefill_s + moving_s - wait_s
    waits = (("decode_prepare", preparing_s), ("decode_bootstrap", preparing_s), ("decode_transferred", moved_s))
    tokenizer, scheduler = _stages(request, (*waits, ("decode_waiting", wait_s), ("decode_forward", request.decode_s)))
    first_ns = _later(request.started_ns, request.frontend_s + request.queue_s + request.prefill_s + moving_s)
    ended_ns = _later(first_ns, request.decode_s)
    return Leg("decode", request.at, request.output_tokens, 1, tokenizer, scheduler, request.ttft_s, first_ns, ended_ns)


def _stages(request: Request, scheduled: tuple[tuple[str, float], ...]) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    shares = (("tokenize", request.frontend_s * TOKENIZE), ("api_server_dispatch", request.frontend_s * DISPATCH))
    tokenizer = _chain(request.started_ns, shares)
    return tokenizer, _chain(_later(tokenizer[-1].ended_ns, request.frontend_s * HANDOVER), scheduled)


def _chain(at_ns: int, stages: tuple[tuple[str, float], ...]) -> tuple[Stage, ...]:
    chain = []
    for name, seconds in stages:
        chain.append(Stage(name, at_ns, _later(at_ns, seconds)))
        at_ns = chain[-1].ended_ns
    return tuple(chain)


def _later(at_ns: int, seconds: float) -> int:
    return at_ns + int(seconds * NS)
