-- What time series said from $since to $until that requests can be settled and checked by; labels as pairs.
select observed_at, replica, name, map_entries(labels) as labels, value, kind, total, since, signal, engine, sender
from samples
where observed_at >= $since and observed_at <= $until
and signal in (
    'running_requests', 'queue_depth', 'kv_usage', 'kv_block_tokens', 'gpu_memory_used_bytes', 'gpu_memory_free_bytes',
    'collective_bus_bytes_per_s', 'collective_s', 'requests_total', 'prompt_tokens_total', 'output_tokens_total', 'cached_tokens_total',
    'cache_queried_tokens_total', 'draft_tokens_total', 'accepted_tokens_total', 'verify_steps_total', 'preemptions_total',
    'evicted_tokens_total', 'kv_transfer_s', 'kv_transfer_bytes', 'kv_transfer_bytes_per_s', 'tpot_s'
)
