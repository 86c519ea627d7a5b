-- More of what a dialect may read from a span: the time in the model, an upper bound of the KV transfer, how many drafts were accepted at
-- each position (a JSON list), and whether the request was tried again. Older parts lack them, and read as null.
alter table spans_hot add column signals.inference_s double;
alter table spans_hot add column signals.kv_transfer_bound_s double;
alter table spans_hot add column signals.accepted_by_position varchar;
alter table spans_hot add column signals.retried bigint;
create or replace view spans as select * from spans_hot;

-- The ids under which spans of one trace may be completed by another trace (a response body, a log record, the other leg of a pair), and
-- when those spans lie, and when partners may lie. The assembly looks here for what the traces it takes belong to; an hour old, a key is
-- forgotten.
create table open_keys (
    join_key varchar not null, trace_id varchar not null, since timestamptz not null, until timestamptz not null,
    near_since timestamptz not null, near_until timestamptz not null,
    noted_at timestamptz not null default current_timestamp
);
