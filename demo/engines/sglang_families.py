"""What SGLang 0.5.23 counts and measures, as its page names it: names, what they are in our words, and the edges of buckets."""

from __future__ import annotations

GAUGES = {
    "num_running_reqs": "Requests in the batch.",
    "num_queue_reqs": "Requests waiting.",
    "gen_throughput": "Generated tokens per second.",
    "cache_hit_rate": "Share of prompt tokens that were cached, lately.",
    "token_usage": "Share of the cache in use, 0 to 1.",
    "full_token_usage": "Share of the full attention's cache in use, 0 to 1.",
    "num_used_tokens": "Tokens of the cache in use.",
    "kv_available_tokens": "Tokens of the cache that are free.",
    "kv_evictable_tokens": "Tokens of the cache that may be given up.",
    "kv_used_tokens": "Tokens of the cache in use by requests.",
    "spec_accept_length": "Tokens a verify step gave, lately.",
    "spec_accept_rate": "Share of drafts accepted, lately.",
    "num_retracted_reqs": "Requests retracted, lately.",
    "num_prefill_bootstrap_queue_reqs": "Requests in the prefill worker's bootstrap queue.",
    "num_prefill_inflight_queue_reqs": "Requests whose state is moving.",
    "num_decode_prealloc_queue_reqs": "Requests that wait for room on the decode worker.",
    "num_decode_transfer_queue_reqs": "Requests whose state is being fetched.",
    "max_total_num_tokens": "Tokens of the cache.",
    "page_size": "Tokens of a page.",
    "num_pages": "Pages of the cache.",
}
COUNTERS = {
    "num_retracted_requests": "Requests retracted.",
    "realtime_tokens": "Tokens processed, by kind.",
    "prefill_effective_tokens": "Prompt tokens, by where their state came from.",
    "num_bootstrap_failed_reqs": "Bootstraps that failed.",
    "num_transfer_failed_reqs": "Transfers that failed.",
}
TOKENIZER_COUNTERS = {
    "prompt_tokens": "Prompt tokens of requests that ended.",
    "generation_tokens": "Generated tokens of requests that ended.",
    "spec_verify_calls": "Verify steps.",
    "cached_tokens": "Prompt tokens not computed, by tier.",
    "num_requests": "Requests that ended.",
    "num_aborted_requests": "Requests aborted.",
}
EVICTED = ("evicted_tokens", "Tokens of the cache given up.")

QUEUE_S = (
    0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 400, 500, 600, 700,
    800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000,
)  # fmt: skip
STAGE_S = tuple(0.001 * 1.62**power for power in range(30))
FIRST_TOKEN_S = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
REQUEST_S = (*FIRST_TOKEN_S, 600, 1200, 1800, 2400)
TOKEN_S = (
    0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8,
)  # fmt: skip
TOKENS = (
    100, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 12500, 15000, 17500, 20000, 22500, 25000, 27500,
    30000, 35000, 40000, 60000, 80000, 100000, 200000, 300000, 400000, 600000, 800000, 1000000, 1100000,
)  # fmt: skip
MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500)
HISTOGRAMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "queue_time_seconds": ("Time a request waited first.", QUEUE_S),
    "per_stage_req_latency_seconds": ("Time of a request's stages.", STAGE_S),
    "kv_transfer_speed_gb_s": ("Speed of a transfer, in GiB a second.", (0.1, 0.5, 1, 5, 10, 25, 50, 100, 200, 400)),
    "kv_transfer_latency_ms": ("Time of a transfer, in milliseconds.", (*MS, 5000)),
    "kv_transfer_total_mb": ("Size of a transfer, in MiB.", (1, 5, 10, 50, 100, 500, 1000, 5000, 10000)),
    "kv_transfer_bootstrap_ms": ("Time of a bootstrap, in milliseconds.", MS),
    "kv_transfer_alloc_ms": ("Time until there was room, in milliseconds.", MS),
}
TOKENIZER_HISTOGRAMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "prompt_tokens_histogram": ("Prompt tokens of a request.", TOKENS),
    "uncached_prompt_tokens_histogram": ("Prompt tokens of a request that were computed.", TOKENS),
    "generation_tokens_histogram": ("Generated tokens of a request.", TOKENS),
    "time_to_first_token_seconds": ("Time to the first token.", FIRST_TOKEN_S),
    "inter_token_latency_seconds": ("Time per token.", TOKEN_S),
    "request_time_per_output_token_seconds": ("Time per token of a request.", TOKEN_S),
    "e2e_request_latency_seconds": ("Time of a request.", REQUEST_S),
}
