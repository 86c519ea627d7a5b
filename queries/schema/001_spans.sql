-- One row per stored span. `signals` holds what its dialect read from it, in canonical units; null where it does not speak.
-- `role` says what the span is in its request: engine, gateway, client, body, stage or housekeeping; null for an unknown dialect.
create table spans_hot (
    trace_id varchar not null,
    span_id varchar not null,
    parent_span_id varchar,
    name varchar not null,
    kind varchar not null,
    started_at timestamptz not null,
    ended_at timestamptz not null,
    start_unix_nano bigint not null,
    duration_s double not null,
    status varchar not null,
    status_message varchar,
    scope varchar,
    service varchar,
    replica varchar,
    sender varchar not null,
    dialect varchar,
    role varchar,
    signals struct(
        request_id varchar, join_key varchar, engine_version varchar, model varchar, tenant varchar, route varchar,
        phase varchar, pool varchar, prefill_replica varchar, decode_replica varchar, outcome varchar, finish_reason varchar,
        prompt_tokens bigint, cached_tokens bigint, output_tokens bigint,
        queue_s double, prefill_s double, decode_s double, ttft_s double, e2e_s double,
        draft_tokens bigint, accepted_tokens bigint, verify_steps bigint,
        kv_transfer_bytes bigint, kv_transfer_s double, link_peak_bytes_per_s double,
        batch_at_admission bigint, queue_depth bigint, kv_usage double, preemptions bigint,
        hardware varchar, topology varchar, gpus bigint, temperature double, samples_n bigint
    ),
    levers map(varchar, varchar),
    arms map(varchar, varchar),
    resource map(varchar, varchar) not null,
    attributes map(varchar, varchar) not null,
    events struct(name varchar, time_unix_nano bigint, attributes map(varchar, varchar))[] not null,
    links struct(trace_id varchar, span_id varchar, attributes map(varchar, varchar))[] not null,
    received_at timestamptz not null
);
