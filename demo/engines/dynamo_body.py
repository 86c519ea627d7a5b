"""Dynamo's answers: a request record in, the JSON body of a chat completion that is not streamed out, as its frontend sends it."""

from __future__ import annotations

from typing import Any

from demo.engines import dynamo_legs
from demo.records import Request

TEXT = "-"
"""In the place of the answer."""
ERROR_STATUS = 500


def answer(request: Request) -> dict[str, Any]:
    """The body, an error's where the request failed, and an empty one where its client had gone away."""
    if request.outcome == "aborted":
        return {}
    if request.outcome == "error":
        return {"message": "Internal server error", "type": "Internal Server Error", "code": ERROR_STATUS}
    return completion(request)


def completion(request: Request) -> dict[str, Any]:
    """The answer as far as it came; an aborted one has no finish reason."""
    message = {"content": TEXT, "refusal": None, "role": "assistant"}
    reason = request.finish_reason if request.outcome == "ok" else None
    return {
        "id": f"chatcmpl-{dynamo_legs.request_id(request)}",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "created": request.started_ns // 1_000_000_000,
        "model": request.at.model,
        "object": "chat.completion",
        "usage": {
            "prompt_tokens": request.prompt_tokens,
            "completion_tokens": request.output_tokens,
            "total_tokens": request.prompt_tokens + request.output_tokens,
            "prompt_tokens_details": {"cached_tokens": request.cached_tokens},
        },
    }
