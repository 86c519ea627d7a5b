"""What vLLM 0.32 counts and measures, as its page names it: names, what they are in our words, and the edges of buckets."""

from __future__ import annotations

COUNTERS = {
    "spec_decode_num_drafts": "Steps of requests that had drafts.",
    "spec_decode_num_draft_tokens": "Tokens drafted.",
    "spec_decode_num_accepted_tokens": "Drafted tokens accepted.",
    "spec_decode_num_accepted_tokens_per_pos": "Drafted tokens accepted, by position.",
    "estimated_flops_per_gpu": "Floating point operations per GPU, estimated.",
    "estimated_read_bytes_per_gpu": "Bytes read per GPU, estimated.",
    "estimated_write_bytes_per_gpu": "Bytes written per GPU, estimated.",
    "prefix_cache_queries": "Tokens the prefix cache was asked for.",
    "prefix_cache_hits": "Tokens the prefix cache had.",
    "external_prefix_cache_queries": "Tokens other instances were asked for.",
    "external_prefix_cache_hits": "Tokens other instances had.",
    "mm_cache_queries": "Items the multi-modal cache was asked for.",
    "mm_cache_hits": "Items the multi-modal cache had.",
    "num_preemptions": "Requests preempted.",
    "prompt_tokens": "Prompt tokens.",
    "prompt_tokens_by_source": "Prompt tokens, by where their state came from.",
    "prompt_tokens_cached": "Prompt tokens not computed.",
    "prompt_tokens_cached_by_source": "Prompt tokens not computed, by the tier that had them.",
    "generation_tokens": "Generated tokens.",
    "request_success": "Requests that ended, by reason.",
}
GAUGES = {
    "num_requests_running": "Requests in the batch.",
    "num_requests_waiting": "Requests waiting.",
    "num_requests_waiting_by_reason": "Requests waiting, by reason.",
    "engine_sleep_state": "Whether the engine is awake.",
    "kv_cache_usage_perc": "Share of the cache in use, 0 to 1.",
}
NIXL_COUNTERS = {
    "nixl_num_failed_transfers": "Transfers that failed.",
    "nixl_num_failed_notifications": "Notifications that failed.",
    "nixl_num_kv_expired_reqs": "Requests whose state nobody fetched.",
    "nixl_num_notifications_after_expiry": "Notifications of state that had expired.",
}

TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
"""Up to the context of a model, here of 131,072 tokens."""
STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
FIRST_TOKEN_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
HISTOGRAMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "request_prompt_tokens": ("Prompt tokens of a request.", TOKENS),
    "request_generation_tokens": ("Generated tokens of a request.", TOKENS),
    "iteration_tokens_total": ("Tokens of a step.", STEP_TOKENS),
    "request_max_num_generation_tokens": ("Most tokens of a request's samples.", TOKENS),
    "request_params_n": ("Samples asked for.", (1, 2, 5, 10, 20)),
    "request_params_max_tokens": ("Tokens asked for at most.", TOKENS),
    "time_to_first_token_seconds": ("Time to the first token.", FIRST_TOKEN_S),
    "inter_token_latency_seconds": ("Time between a request's steps.", TOKEN_S),
    "request_time_per_output_token_seconds": ("Time per token of a request.", TOKEN_S),
    "e2e_request_latency_seconds": ("Time of a request.", REQUEST_S),
    "request_queue_time_seconds": ("Time a request waited.", REQUEST_S),
    "request_inference_time_seconds": ("Time a request ran.", REQUEST_S),
    "request_prefill_time_seconds": ("Time of a request's prefill.", REQUEST_S),
    "request_decode_time_seconds": ("Time of a request's decoding.", REQUEST_S),
    "request_num_preemptions": ("Preemptions of a request.", (1, 2, 3, 4, 5, 10, 20)),
    "request_prefill_kv_computed_tokens": ("Prompt tokens of a request that were computed.", TOKENS),
}
POST_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 5)
NIXL_HISTOGRAMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "nixl_xfer_time_seconds": ("Time of a rank's transfer.", POST_S[1:]),
    "nixl_post_time_seconds": ("Time of posting a rank's transfer.", POST_S),
    "nixl_bytes_transferred": ("Bytes of a rank's transfer.", tuple(2.0 ** (10 + power) for power in range(1, 25, 2))),
    "nixl_num_descriptors": (
        "Descriptors of a rank's transfer.",
        (10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000),
    ),
}

CACHE_CONFIG = {
    **dict.fromkeys(
        ("cache_hit_alignment_tokens", "hash_block_size", "kv_cache_layout", "kv_offloading_size", "mamba_block_size", "num_cpu_blocks",
         "mamba_page_size_padded", "num_gpu_blocks_override", "prefix_match_unit", "skip_page_size_padded", "sliding_window"),
        "None",
    ),
    **dict.fromkeys(("_block_size_resolved", "swa_bounded_replay", "user_specified_block_size"), "True"),
    **dict.fromkeys(
        ("enable_mamba_shared_prefix_checkpoint", "is_attention_free", "kv_sharing_fast_prefill", "use_kda_recoverssm", "use_replayssm"),
        "False",
    ),
    **dict.fromkeys(("cache_dtype", "mamba_cache_dtype", "mamba_ssm_cache_dtype"), "auto"),
    "engine": "0",
    "enable_prefix_caching": "True",
    "gpu_memory_utilization": "0.92",
    "kv_cache_dtype_skip_layers": "[]",
    "kv_cache_memory_bytes": "None",
    "kv_offloading_backend": "native",
    "mamba_cache_mode": "none",
    "prefix_cache_retention_interval": "0",
    "prefix_caching_hash_algo": "sha256",
    "replayssm_buffer_len": "16",
}  # fmt: skip
"""Labels of `cache_config_info` that do not depend on the process."""
