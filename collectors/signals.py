"""The signals a dialect may give: the fields of `spans.signals`, their types, and the units they may arrive in."""

from __future__ import annotations

from typing import Literal

SignalType = Literal["text", "whole", "real"]

SIGNALS: dict[str, SignalType] = {
    "request_id": "text",
    "join_key": "text",
    "engine_version": "text",
    "model": "text",
    "tenant": "text",
    "route": "text",
    "phase": "text",
    "pool": "text",
    "prefill_replica": "text",
    "decode_replica": "text",
    "outcome": "text",
    "finish_reason": "text",
    "prompt_tokens": "whole",
    "cached_tokens": "whole",
    "output_tokens": "whole",
    "queue_s": "real",
    "prefill_s": "real",
    "decode_s": "real",
    "ttft_s": "real",
    "e2e_s": "real",
    "draft_tokens": "whole",
    "accepted_tokens": "whole",
    "verify_steps": "whole",
    "kv_transfer_bytes": "whole",
    "kv_transfer_s": "real",
    "link_peak_bytes_per_s": "real",
    "batch_at_admission": "whole",
    "queue_depth": "whole",
    "kv_usage": "real",
    "preemptions": "whole",
    "hardware": "text",
    "topology": "text",
    "gpus": "whole",
    "temperature": "real",
    "samples_n": "whole",
    "inference_s": "real",
    "kv_transfer_bound_s": "real",
    "accepted_by_position": "text",
    "retried": "whole",
    "kv_block_tokens": "whole",
    "chunks": "whole",
    "chunk_gap_p50_s": "real",
    "chunk_gap_p95_s": "real",
    "chunk_gap_p99_s": "real",
    "chunk_gap_max_s": "real",
    "stall_s": "real",
    "inferred": "text",  # signals that a span says by leaving an attribute out (`Source.absent`), joined by commas
}

# What one native unit is in the canonical one. Text units have no factor. `rust_duration` is a text with its unit in it ("58.4ms"), `flag`
# a truth value or its text.
FACTORS: dict[str, float] = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "rust_duration": 1.0,
    "tokens": 1.0,
    "count": 1.0,
    "ratio": 1.0,
    "flag": 1.0,
    "percent": 1e-2,
    "bytes": 1.0,
    "mib": 1048576.0,
    "bytes/s": 1.0,
    "gib/s": 1073741824.0,
}
TEXT_UNITS = ("text", "json_list")
