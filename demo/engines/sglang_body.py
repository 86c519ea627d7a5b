"""SGLang 0.5.23 with --enable-metrics: a request record in, the answer's JSON out, as of its own `/generate`, not streamed."""

from __future__ import annotations

from typing import Any

from demo.engines import sglang, sglang_legs
from demo.engines.vllm_body import acceptance_histogram
from demo.records import Request

TEXT = "-"
"""In the place of the answer."""
NS = 1_000_000_000


def answer(request: Request) -> dict[str, Any]:
    """The body, an error's where the request failed, and an empty one where its client had gone away. Times are in seconds."""
    if request.outcome == "aborted":
        return {}
    if request.outcome == "error":
        return {"error": {"message": sglang.REASONS["error"]}}
    leg = sglang_legs.legs(request)[-1]
    meta = {
        "id": sglang.request_id(request),
        "finish_reason": _finish(request),
        "prompt_tokens": request.prompt_tokens,
        "weight_version": "default",
        "num_retractions": request.preemptions,
        "queue_time": request.queue_s,
        "forward_entry_time": (leg.first_token_ns - int(request.prefill_s * NS)) / NS,
        "prefill_finished_time": leg.first_token_ns / NS,
        "reasoning_tokens": 0,
        "completion_tokens": request.output_tokens,
        "cached_tokens": request.cached_tokens,
        "cached_tokens_details": {"device": request.cached_tokens, "host": 0} if request.cached_tokens else None,
        "dp_rank": None,
        "e2e_latency": (leg.ended_ns - leg.started_ns) / NS,
        **_speculation(request),
        "request_received_ts": leg.started_ns / NS,
        "first_token_latency": leg.ttft_s,
        "api_server_dispatch_finish_ts": leg.dispatched_ns / NS,
        "response_sent_to_client_ts": leg.ended_ns / NS,
        "request_finished_ts": leg.ended_ns / NS,
    }
    if request.output_tokens > 1 and request.decode_s > 0:
        meta["decode_throughput"] = (request.output_tokens - 1) / request.decode_s
    return {"text": TEXT, "output_ids": [], "meta_info": meta}


def _finish(request: Request) -> dict[str, Any]:
    reason = request.finish_reason
    return {"type": reason, "length": request.output_tokens} if reason == "length" else {"type": reason, "matched": 2}


def _speculation(request: Request) -> dict[str, Any]:
    """Absent without a verify step; the accepted length counts the token of the prefill too."""
    steps, drafted, accepted = request.verify_steps, request.draft_tokens, request.accepted_tokens
    if not steps or not drafted or accepted is None:
        return {}
    return {
        "spec_accept_rate": accepted / drafted,
        "spec_accept_length": request.output_tokens / steps,
        "spec_num_correct_drafts": accepted,
        "spec_num_proposed_drafts": drafted,
        "spec_verify_ct": steps,
        "spec_correct_drafts_histogram": acceptance_histogram(request),
    }
