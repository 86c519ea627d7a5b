"""The servers of TensorRT-LLM that took part in a request: a request record in, one server's times after another out.

Its times count from when a server's executor took the request, so they are without the front end's own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from demo.engines import wire
from demo.records import Deployment, Request

UNKNOWN_S = -1.0
DETOKENIZED_S = 0.001
"""From the last token to the end of the request."""

Phase = Literal["unified", "context", "generation"]


@dataclass(frozen=True, slots=True)
class Leg:
    """One server's part of a request, in seconds from `arrived_ns`, and its tokens. A time of -1 is one that the server does not know."""

    phase: Phase
    at: Deployment
    arrived_ns: int
    queue_s: float
    ttft_s: float
    scheduled_s: float
    first_token_s: float
    last_token_s: float
    output_tokens: int
    finish_reason: str

    @property
    def ended_ns(self) -> int:
        """When the server's last token was there."""
        return self.arrived_ns + round(self.last_token_s * wire.NS)


def legs(request: Request) -> tuple[Leg, ...]:
    """The context server's and the generation server's part, or the only one."""
    if request.prefill_at is None or request.kv_transfer_s is None:
        return (_unified(request),)
    queue_s = max(request.queue_s, 0.0)
    read_s = queue_s + request.prefill_s
    context = Leg(
        "context",
        request.prefill_at,
        _taken_ns(request),
        request.queue_s,
        _known(request, read_s),
        queue_s,
        read_s,
        read_s,
        1,
        "not_finished",
    )
    waits_s = request.decode_queue_s
    came_s = max(handed_s(request), waits_s)
    generation = Leg(
        "generation",
        request.at,
        context.ended_ns,
        waits_s,
        came_s,
        waits_s,
        came_s,
        came_s + request.decode_s,
        request.output_tokens,
        request.finish_reason,
    )
    return context, generation


def handed_s(request: Request) -> float:
    """From the prompt read to the first step of who decodes: the state moved, and room was waited for."""
    before_s = request.frontend_s + max(request.queue_s, 0.0) + request.prefill_s
    return max(0.0, request.e2e_s - DETOKENIZED_S - request.decode_s - before_s)


def moved_s(request: Request) -> float:
    """How long the state was on its way."""
    return max(0.0, handed_s(request) - request.decode_queue_s)


def request_id(request: Request, at: Deployment) -> int:
    """The number that a server gives a request: another one on each, so it joins nothing."""
    digest = hashlib.blake2b(request.request_key, digest_size=3, key=f"{request.attempt % wire.TOLD_AGAIN} {at.replica}".encode())
    return int.from_bytes(digest.digest(), "big")


def _unified(request: Request) -> Leg:
    queue_s = max(request.queue_s, 0.0)
    first_s = queue_s + request.prefill_s
    said_s = request.ttft_s - request.frontend_s if request.ttft_s != UNKNOWN_S else UNKNOWN_S
    last_s, tokens, reason = first_s + request.decode_s, request.output_tokens, request.finish_reason
    return Leg("unified", request.at, _taken_ns(request), request.queue_s, said_s, queue_s, first_s, last_s, tokens, reason)


def _taken_ns(request: Request) -> int:
    return request.started_ns + round(request.frontend_s * wire.NS)


def _known(request: Request, seconds: float) -> float:
    return seconds if request.ttft_s != UNKNOWN_S else UNKNOWN_S
