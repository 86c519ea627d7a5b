"""What a fleet's telemetry suffers from: a request as it was in, what is told of it out. The same request suffers the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from demo.records import Request
from demo.scenarios.layout import Bug, Disorder

NS = 1_000_000_000


def told(request: Request, disorder: Disorder) -> Iterator[Request]:
    """The request as its engine tells it, and again where a leg of it is told twice under another span."""
    for bug in disorder.bugs:
        request = BUGS[bug](request)
    ahead_s = disorder.clock_ahead_s.get(request.at.replica, 0.0)
    if ahead_s:
        request = request._replace(started_ns=request.started_ns + round(ahead_s * NS))
    yield request
    if _share(request, 0) < disorder.duplicate_share:
        yield request._replace(attempt=request.attempt + 100)


def by_a_right_clock(told: Request, disorder: Disorder) -> Request:
    """What was told of a request, as a host tells it that is not its replica's, and whose clock is right."""
    ahead_s = disorder.clock_ahead_s.get(told.at.replica, 0.0)
    return told._replace(started_ns=told.started_ns - round(ahead_s * NS)) if ahead_s else told


def _share(request: Request, byte: int) -> float:
    """A number from 0 to 1 that is the request's own."""
    return int.from_bytes(request.request_key[byte : byte + 4], "big") / (1 << 32)


def _cached_is_prompt_less_one(request: Request) -> Request:
    """A decode worker takes what came over the link for its own cache (vllm-project/vllm#43370)."""
    return request._replace(cached_tokens=request.prompt_tokens - 1) if request.prefill_at is not None else request


def _recomputed_counts_as_cached(request: Request) -> Request:
    """After a preemption the blocks of prompt and answer are found again, and counted as hits (vllm-project/vllm#25780)."""
    return request._replace(cached_tokens=request.prompt_tokens + request.output_tokens // 2) if request.preemptions else request


def _missing_is_minus_one(request: Request) -> Request:
    """A time that is not known is said to be -1 (TensorRT-LLM#5897); one request of 16 does not know."""
    return request._replace(ttft_s=-1.0, queue_s=-1.0) if _share(request, 4) < 1 / 16 else request


def _accepted_includes_bonus(request: Request) -> Request:
    """Each step's own token is counted as an accepted draft (sgl-project/sglang#11572): acceptance comes out above 1."""
    if request.accepted_tokens is None or request.verify_steps is None:
        return request
    return request._replace(accepted_tokens=request.accepted_tokens + request.verify_steps, accepted_by_position=None)


def _clock_steps_back(request: Request) -> Request:
    """The wall clock is set back while a request runs: its time to the first token is negative, the engine's own times stay sound."""
    return request._replace(ttft_s=request.ttft_s - 3.0) if _share(request, 8) < 1 / 32 else request


BUGS: Mapping[Bug, Callable[[Request], Request]] = MappingProxyType(
    {
        "cached_is_prompt_less_one": _cached_is_prompt_less_one,
        "recomputed_counts_as_cached": _recomputed_counts_as_cached,
        "missing_is_minus_one": _missing_is_minus_one,
        "accepted_includes_bonus": _accepted_includes_bonus,
        "clock_steps_back": _clock_steps_back,
    }
)
