"""What Dynamo 1.6 counts and measures, as its pages name it: names, what they are in our words, and the edges of buckets."""

from __future__ import annotations

NET_S = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1)
PERMIT_S = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60)
RESPONSE_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
HANDLED_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)
PROMPT_TOKENS = (0, 100, 210, 430, 870, 1800, 3600, 7400, 15000, 31000, 63000, 130000)
ANSWER_TOKENS = (0, 100, 210, 430, 880, 1800, 3700, 7600, 16000, 32000)
FIRST_TOKEN_S = (0, 0.0022, 0.0047, 0.01, 0.022, 0.047, 0.1, 0.22, 0.47, 1, 2.2, 4.7, 10, 22, 48, 100, 220, 480)
TOKEN_S = (0, 0.0018, 0.0033, 0.0059, 0.011, 0.02, 0.035, 0.064, 0.12, 0.21, 0.38, 0.69, 1.2, 2.3, 4.1, 7.4, 13, 24, 44, 80)
ANSWERED_S = (0, 2, 4, 8, 16, 32, 64, 130, 260, 510)
MOVED_S = (0, 0.0019, 0.0037, 0.0072, 0.014, 0.027, 0.052, 0.1, 0.19, 0.37, 0.72, 1.4, 2.7, 5.2, 10)
HIT_RATES = tuple(0.05 * step for step in range(21))
ENGINE_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
ENGINE_FIRST_TOKEN_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
ENGINE_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)

Families = dict[str, str]
Buckets = dict[str, tuple[str, tuple[float, ...]]]

# A worker's, with the labels of its component and endpoint.
COMPONENT_COUNTERS: Families = {
    "dynamo_component_cancellation": "Requests that their caller gave up.",
    "dynamo_component_request_bytes": "Bytes of requests.",
    "dynamo_component_requests": "Requests that ended.",
    "dynamo_component_response_bytes": "Bytes of responses.",
}
COMPONENT_GAUGES: Families = {"dynamo_component_inflight_requests": "Requests being handled."}
COMPONENT_HISTOGRAMS: Buckets = {"dynamo_component_request_duration_seconds": ("Time of a request.", HANDLED_S)}
EVENTS_DROPPED = "dynamo_component_kv_publisher_engines_dropped_events"
UPTIME = "dynamo_component_uptime_seconds"

# A worker's own, without labels.
WORKER_COUNTERS: Families = {
    "dynamo_rejection_request": "Requests refused.",
    "dynamo_work_handler_enqueue_rejected": "Requests that found the queue full.",
}
WORKER_GAUGES: Families = {
    "dynamo_engine_request": "Requests in the engine.",
    "dynamo_request_queue": "Requests before the engine.",
    "dynamo_work_handler_pool_active_tasks": "Tasks at work.",
    "dynamo_work_handler_pool_capacity": "Tasks at most.",
    "dynamo_work_handler_queue_capacity": "Requests that may wait.",
    "dynamo_work_handler_queue_depth": "Requests that wait for a task.",
}
WORKER_HISTOGRAMS: Buckets = {
    "dynamo_work_handler_network_transit_seconds": ("Time of a request on the network.", NET_S),
    "dynamo_work_handler_permit_wait_seconds": ("Time a request waited for a permit.", PERMIT_S),
    "dynamo_work_handler_time_to_first_response_seconds": ("Time to the first response.", RESPONSE_S),
}

# Its engine's, under vLLM's names. A worker that only reads prompts has none.
ENGINE_GAUGES: Families = {
    "vllm:gpu_cache_usage_perc": "Share of the cache in use, by an older name.",
    "vllm:kv_cache_usage_perc": "Share of the cache in use, 0 to 1.",
    "vllm:num_requests_running": "Requests in the batch.",
    "vllm:num_requests_waiting": "Requests waiting.",
}
ENGINE_COUNTERS: Families = {"vllm:num_preemptions": "Requests preempted."}
ENGINE_HISTOGRAMS: Buckets = {
    "vllm:e2e_request_latency_seconds": ("Time of a request.", ENGINE_S),
    "vllm:inter_token_latency_seconds": ("Time between tokens.", ENGINE_TOKEN_S),
    "vllm:time_to_first_token_seconds": ("Time to the first token.", ENGINE_FIRST_TOKEN_S),
}

# A frontend's, with the label model.
FRONTEND_COUNTERS: Families = {
    "dynamo_frontend_output_tokens": "Tokens answered.",
    "dynamo_frontend_requests_started": "Requests that came.",
    "dynamo_frontend_requests": "Requests that ended.",
}
FRONTEND_GAUGES: Families = {
    "dynamo_frontend_active_requests": "Requests that a worker has.",
    "dynamo_frontend_inflight_requests": "Requests that have not ended.",
    "dynamo_frontend_queued_requests": "Requests before their first token.",
    "dynamo_frontend_model_kv_cache_block_size": "Tokens of a block.",
    "dynamo_frontend_model_ready": "Whether the model is served.",
    "dynamo_frontend_model_total_kv_blocks": "Blocks of a worker.",
    "dynamo_frontend_router_queue_pending_requests": "Requests that wait for a worker to be chosen.",
}
FRONTEND_HISTOGRAMS: Buckets = {
    "dynamo_frontend_cached_tokens": ("Cached tokens of a prompt.", PROMPT_TOKENS),
    "dynamo_frontend_input_sequence_tokens": ("Tokens of a prompt.", PROMPT_TOKENS),
    "dynamo_frontend_inter_token_latency_seconds": ("Time between tokens.", TOKEN_S),
    "dynamo_frontend_output_sequence_tokens": ("Tokens of an answer.", ANSWER_TOKENS),
    "dynamo_frontend_request_duration_seconds": ("Time of a request.", ANSWERED_S),
    "dynamo_frontend_time_to_first_token_seconds": ("Time to the first token.", FIRST_TOKEN_S),
}
# A frontend's of each of its workers.
OF_WORKER_GAUGES: Families = {
    "dynamo_frontend_worker_active_decode_blocks": "Blocks in use of a worker.",
    "dynamo_frontend_worker_active_prefill_tokens": "Tokens of prompts that a worker has still to read.",
}
# Its router's, with the labels of its component.
ROUTER_HISTOGRAMS: Buckets = {
    "dynamo_component_router_kv_hit_rate": ("Share of a prompt that was hoped to be cached.", HIT_RATES),
    "dynamo_component_router_kv_transfer_estimated_latency_seconds": ("Time from the prompt read to the first token.", MOVED_S),
}
ROUTER_COUNTERS: Families = {
    "dynamo_component_router_requests": "Requests routed that ended.",
    "dynamo_component_router_requests_started": "Requests routed.",
}
