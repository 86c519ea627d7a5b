-- Requests that were loaded as such (`leverwatch load`), each once, as they were given; `is_taken` once assembly has made its row of
-- `requests` from it.
create table imported_requests (
    request_id varchar not null, started_at timestamptz not null, trace_id varchar not null, ended_at timestamptz not null,
    engine varchar, engine_version varchar, gateway varchar, model varchar, tenant varchar, route varchar,
    replica varchar, prefill_replica varchar, decode_replica varchar, outcome varchar not null, finish_reason varchar,
    prompt_tokens bigint, cached_tokens bigint, output_tokens bigint,
    queue_s double, prefill_s double, decode_s double, ttft_s double, e2e_s double, tpot_s double,
    draft_tokens bigint, accepted_tokens bigint, verify_steps bigint, accepted_by_position bigint[],
    kv_transfer_bytes bigint, kv_transfer_s double, link_peak_bytes_per_s double,
    batch_at_admission bigint, concurrency bigint, queue_depth bigint, kv_usage double, preemptions bigint,
    hardware varchar, topology varchar, gpus bigint, temperature double, samples_n bigint,
    levers map(varchar, varchar), arms map(varchar, varchar),
    input_bucket varchar, output_bucket varchar, cache_class varchar, batch_bucket varchar, concurrency_bucket varchar,
    temperature_bucket varchar, provenance map(varchar, varchar), flags varchar[],
    sender varchar not null, received_at timestamptz not null, is_taken boolean not null default false
);
