"""TensorRT-LLM's `/perf_metrics`: a request record in, the server's own JSON record of it out, both servers' where they are two.

Times are of a steady clock, in seconds. A request that did not complete has no record.
"""

from __future__ import annotations

from typing import Any

from demo.engines import trtllm_legs, wire
from demo.engines.trtllm_legs import Leg
from demo.records import Request

STEADY_BEGAN_S = 1_700_000_000
"""Unix seconds at which the steady clocks stood at 0: that of some host's start."""
ITERATION_S = 0.01


def record(request: Request) -> dict[str, Any] | None:
    """The record, None for a request without one."""
    if request.outcome != "ok":
        return None
    legs = trtllm_legs.legs(request)
    if len(legs) == 1:
        return _served(request, legs[0])
    context, generation = legs
    return {
        "ctx_server": context.at.replica,
        "gen_server": generation.at.replica,
        "disagg_server_arrival_time": _steady_s(request.started_ns),
        "disagg_server_first_token_time": _steady_s(generation.arrived_ns) + generation.first_token_s,
        "ctx_perf_metrics": _served(request, context),
        "gen_perf_metrics": _served(request, generation),
    }


def _served(request: Request, leg: Leg) -> dict[str, Any]:
    first = int((_steady_s(leg.arrived_ns) + leg.first_token_s) / ITERATION_S)
    metrics: dict[str, Any] = {
        "first_iter": first,
        "last_iter": first + (0 if leg.phase == "context" else request.decode_steps),
        "timing_metrics": _timing(request, leg),
        "kv_cache_metrics": _blocks(request, leg),
    }
    if request.draft_tokens is not None and leg.phase != "context":
        metrics["speculative_decoding"] = _drafts(request)
    number = trtllm_legs.request_id(request, leg.at)
    return {"request_id": number, "perf_metrics": metrics} | ({} if leg.phase == "unified" else {"ctx_request_id": _context_id(request)})


def _context_id(request: Request) -> int:
    return trtllm_legs.request_id(request, request.prefill_at or request.at)


def _timing(request: Request, leg: Leg) -> dict[str, float]:
    arrived_s = _steady_s(leg.arrived_ns)
    times = {
        "arrival_time": arrived_s,
        "first_scheduled_time": arrived_s + leg.scheduled_s,
        "first_token_time": arrived_s + leg.first_token_s,
        "last_token_time": arrived_s + leg.last_token_s,
        "server_arrival_time": _steady_s(request.started_ns) if leg.phase != "generation" else arrived_s,
    }
    if leg.phase == "generation":
        times["kv_cache_transfer_start"] = times["first_scheduled_time"]
        times["kv_cache_transfer_end"] = times["first_scheduled_time"] + trtllm_legs.moved_s(request)
        times["kv_cache_size"] = round(request.kv_transfer_bytes or 0.0)
    return times


def _blocks(request: Request, leg: Leg) -> dict[str, int]:
    """A block counts as reused where its tokens were there, and as missed where they had to be computed or fetched."""
    size = leg.at.kv_block_tokens
    of_prompt = -(-request.prompt_tokens // size)
    reused = request.cached_tokens // size if leg.phase != "generation" else 0
    in_all = -(-(request.prompt_tokens + leg.output_tokens) // size)
    return {
        "num_total_allocated_blocks": in_all,
        "num_new_allocated_blocks": in_all - reused,
        "num_reused_blocks": reused,
        "num_missed_blocks": of_prompt - reused,
    }


def _drafts(request: Request) -> dict[str, float]:
    drafted, accepted = request.draft_tokens or 0, request.accepted_tokens or 0
    rate = accepted / drafted if drafted else 0.0
    return {"acceptance_rate": rate, "total_accepted_draft_tokens": accepted, "total_draft_tokens": drafted}


def _steady_s(unix_ns: int) -> float:
    return (unix_ns - STEADY_BEGAN_S * wire.NS) / wire.NS
