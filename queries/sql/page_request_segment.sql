-- The median of each number of the requests of one segment that began from $since to $until; a null key asks for requests where it is unknown.
select count(*) as n, median(columns([
    'prompt_tokens', 'cached_tokens', 'output_tokens', 'queue_s', 'prefill_s', 'decode_s', 'ttft_s', 'e2e_s', 'tpot_s', 'draft_tokens',
    'accepted_tokens', 'verify_steps', 'kv_transfer_bytes', 'kv_transfer_s', 'batch_at_admission', 'concurrency', 'queue_depth', 'kv_usage',
    'preemptions', 'chunks', 'chunk_gap_p50_s', 'chunk_gap_p95_s', 'chunk_gap_p99_s', 'chunk_gap_max_s', 'stall_s', 'gpu_s'
]))
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and model is not distinct from $model and hardware is not distinct from $hardware and topology is not distinct from $topology
    and input_bucket is not distinct from $input_bucket
