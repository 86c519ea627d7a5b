"""The workers of Dynamo that took part in a request: a request record in, when each was chosen, called and done out.

A prefill worker and a decode worker are called one right after the other; the second waits for the first one's state.
"""

from __future__ import annotations

import functools
import hashlib
import uuid
from typing import Literal, NamedTuple

from demo.engines import wire
from demo.records import Deployment, Request

DETOKENIZED_S = 0.001
"""From the last token to the end of the request."""
RETURN_NS = 300_000
"""From a worker's end to that of the call, and from that to the answer's."""
NEXT_CALL_NS = 500_000
"""From one worker's call to the next one's."""
SELECT_FROM, SELECT_TO, CALL_FROM = 0.7, 0.85, 0.9
"""Shares of the frontend's time: a worker is being chosen, is chosen, is called."""

Phase = Literal["Aggregated", "Prefill", "Decode"]


class Leg(NamedTuple):
    """One worker's part, in Unix nanoseconds."""

    phase: Phase
    at: Deployment
    selecting_ns: int
    selected_ns: int
    called_ns: int
    taken_ns: int
    done_ns: int
    returned_ns: int


def legs(request: Request) -> tuple[Leg, ...]:
    """The parts of the prefill and the decode worker, or that of the only one."""
    until_ns = request.ended_ns - RETURN_NS
    if request.prefill_at is None:
        return (_leg(request, "Aggregated", request.at, 0, until_ns),)
    read_s = request.frontend_s + max(request.queue_s, 0.0) + request.prefill_s
    read_ns = request.started_ns + round(read_s * wire.NS) + 2 * RETURN_NS
    first = _leg(request, "Prefill", request.prefill_at, 0, min(read_ns, until_ns))
    return first, _leg(request, "Decode", request.at, NEXT_CALL_NS, until_ns)


def handed_s(request: Request) -> float:
    """From the prompt read to the first token: the state moved, and room was waited for."""
    before_s = request.frontend_s + max(request.queue_s, 0.0) + request.prefill_s
    return max(0.0, request.e2e_s - DETOKENIZED_S - request.decode_s - before_s)


def itl_ms(request: Request) -> float | None:
    """Milliseconds between tokens on average, None for an answer of one."""
    return request.decode_s / (request.output_tokens - 1) * 1e3 if request.output_tokens > 1 else None


@functools.cache
def worker_id(replica: str) -> int:
    """The number of 64 bits under which Dynamo knows a worker."""
    return int.from_bytes(hashlib.blake2b(replica.encode(), digest_size=8).digest(), "big")


def request_id(request: Request) -> str:
    """The id that the frontend makes for a request: each attempt is one of its own."""
    attempt = request.attempt % wire.TOLD_AGAIN
    key = hashlib.blake2b(request.request_key, digest_size=16, key=str(attempt).encode()).digest()
    return str(uuid.UUID(bytes=key, version=4))


def _leg(request: Request, phase: Phase, at: Deployment, later_ns: int, returned_ns: int) -> Leg:
    frontend_ns, started_ns = request.frontend_s * wire.NS, request.started_ns + later_ns
    selecting, selected, called = (started_ns + round(frontend_ns * share) for share in (SELECT_FROM, SELECT_TO, CALL_FROM))
    done_ns = max(returned_ns - RETURN_NS, called)
    return Leg(phase, at, selecting, selected, called, min(started_ns + round(frontend_ns), done_ns), done_ns, max(returned_ns, called))
