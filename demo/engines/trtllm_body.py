"""TensorRT-LLM's answers: a request record in, the JSON body of a chat completion that is not streamed out."""

from __future__ import annotations

from typing import Any

from demo.records import Request

TEXT = "-"
"""In the place of the answer."""
ERROR_STATUS = 500


def answer(request: Request) -> dict[str, Any]:
    """The body, an error's where the request failed, and an empty one where its client had gone away."""
    if request.outcome == "aborted":
        return {}
    if request.outcome == "error":
        return {"object": "error", "message": "Internal server error", "type": "InternalServerError", "param": None, "code": ERROR_STATUS}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": TEXT, "reasoning_content": None, "tool_calls": []},
        "logprobs": None,
        "finish_reason": request.finish_reason,
        "stop_reason": None,
        "disaggregated_params": None,
        "avg_decoded_tokens_per_iter": _tokens_per_iteration(request),
    }
    return {
        "id": f"chatcmpl-{request.request_key.hex()}",
        "object": "chat.completion",
        "created": request.ended_ns // 1_000_000_000,
        "model": request.at.model,
        "choices": [choice],
        "usage": _usage(request),
        "prompt_token_ids": None,
    }


def _tokens_per_iteration(request: Request) -> float | None:
    """Tokens of each step that decodes, its own and those accepted beside it; None where none was decoded."""
    return (request.output_tokens - 1) / request.decode_steps if request.decode_steps else None


def _usage(request: Request) -> dict[str, Any]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "total_tokens": request.prompt_tokens + request.output_tokens,
        "completion_tokens": request.output_tokens,
        "prompt_tokens_details": {"cached_tokens": request.cached_tokens},
    }
