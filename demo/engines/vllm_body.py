"""vLLM 0.32: a request record in, the answer's JSON out, as for a chat completion that is not streamed.

The server runs with --enable-prompt-tokens-details, --enable-per-request-metrics and --per-request-spec-decode-metrics summary.
"""

from __future__ import annotations

from typing import Any

from demo.engines import vllm
from demo.records import Request

TEXT = "-"
"""In the place of the answer."""
ERROR_STATUS = 500


def answer(request: Request) -> dict[str, Any]:
    """The body, an error's where the request failed, and an empty one where its client had gone away."""
    if request.outcome == "aborted":
        return {}
    if request.outcome == "error":
        return {"error": {"message": "the engine is out of order", "type": "InternalServerError", "param": None, "code": ERROR_STATUS}}
    message: dict[str, Any] = {"role": "assistant", "content": TEXT, "refusal": None, "tool_calls": [], "reasoning": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": request.finish_reason, "stop_reason": None}
    nothing = dict.fromkeys(("service_tier", "system_fingerprint", "prompt_logprobs", "prompt_token_ids", "kv_transfer_params"))
    return {
        "id": vllm.request_id(request),
        "object": "chat.completion",
        "created": request.started_ns // 1_000_000_000,
        "model": request.at.model,
        "choices": [choice],
        "usage": _usage(request),
        **nothing,
        "metrics": {**_times(request), "speculative_decoding": _speculation(request)},
    }


def acceptance_histogram(request: Request) -> list[int]:
    """How many verify steps accepted 0, 1, ... drafts; empty where nothing was drafted."""
    if not request.verify_steps or not request.accepted_by_position:
        return []
    reached = (request.verify_steps, *request.accepted_by_position)
    return [here - further for here, further in zip(reached, (*request.accepted_by_position, 0), strict=True)]


def _usage(request: Request) -> dict[str, Any]:
    total = request.prompt_tokens + request.output_tokens
    usage = {"prompt_tokens": request.prompt_tokens, "total_tokens": total, "completion_tokens": request.output_tokens}
    return {**usage, "prompt_tokens_details": {"cached_tokens": request.cached_tokens}}


def _times(request: Request) -> dict[str, float | None]:
    """In milliseconds, of the worker that answers; its time to the first token counts from when it was scheduled."""
    leg, further = vllm.legs(request)[-1], request.output_tokens - 1
    return {
        "time_to_first_token_ms": leg.prefill_s * 1e3,
        "generation_time_ms": leg.decode_s * 1e3,
        "queue_time_ms": leg.queue_s * 1e3,
        "mean_itl_ms": leg.decode_s / further * 1e3 if further else None,
        "tokens_per_second": request.output_tokens / max(leg.prefill_s + leg.decode_s, 1e-9),
    }


def _speculation(request: Request) -> dict[str, Any] | None:
    steps, drafted, accepted = request.verify_steps, request.draft_tokens, request.accepted_tokens
    if not steps or not drafted or accepted is None:
        return None
    return {
        "mean_acceptance_length": 1 + accepted / steps,
        "draft_acceptance_rate": accepted / drafted,
        "acceptance_histogram": acceptance_histogram(request),
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": drafted,
        "num_spec_tokens": request.at.speculative_tokens,
    }
