-- What a request met where it ran, joined when its period has ended (settling): load, shares of a replica's and a link's time, and counts
-- by exposure; and what a response tap saw of the stream. `is_settled` is false until that was done, whatever is found then.
alter table requests_hot add column kv_block_tokens bigint;
alter table requests_hot add column gpu_s double;
alter table requests_hot add column kv_link_s double;
alter table requests_hot add column evicted_tokens bigint;
alter table requests_hot add column gpu_memory_used_bytes bigint;
alter table requests_hot add column gpu_memory_free_bytes bigint;
alter table requests_hot add column collective_bus_bytes_per_s double;
alter table requests_hot add column communication_fraction double;
alter table requests_hot add column chunks bigint;
alter table requests_hot add column chunk_gap_p50_s double;
alter table requests_hot add column chunk_gap_p95_s double;
alter table requests_hot add column chunk_gap_p99_s double;
alter table requests_hot add column chunk_gap_max_s double;
alter table requests_hot add column stall_s double;
alter table requests_hot add column is_settled boolean;
create or replace view requests as select * from requests_hot;

alter table imported_requests add column kv_block_tokens bigint;
alter table imported_requests add column gpu_s double;
alter table imported_requests add column kv_link_s double;
alter table imported_requests add column evicted_tokens bigint;
alter table imported_requests add column gpu_memory_used_bytes bigint;
alter table imported_requests add column gpu_memory_free_bytes bigint;
alter table imported_requests add column collective_bus_bytes_per_s double;
alter table imported_requests add column communication_fraction double;
alter table imported_requests add column chunks bigint;
alter table imported_requests add column chunk_gap_p50_s double;
alter table imported_requests add column chunk_gap_p95_s double;
alter table imported_requests add column chunk_gap_p99_s double;
alter table imported_requests add column chunk_gap_max_s double;
alter table imported_requests add column stall_s double;

alter table spans_hot add column signals.kv_block_tokens bigint;
alter table spans_hot add column signals.chunks bigint;
alter table spans_hot add column signals.chunk_gap_p50_s double;
alter table spans_hot add column signals.chunk_gap_p95_s double;
alter table spans_hot add column signals.chunk_gap_p99_s double;
alter table spans_hot add column signals.chunk_gap_max_s double;
alter table spans_hot add column signals.stall_s double;
create or replace view stored_spans as select * from spans_hot;
create or replace view spans as
select * exclude (numbers, joins_by_request_id) replace (
    case when joins_by_request_id then struct_update(signals, join_key := signals.request_id) else signals end as signals,
    case
        when coalesce(cardinality(numbers), 0) = 0 then attributes
        else map(
            list_concat(map_keys(attributes), map_keys(numbers)),
            list_concat(map_values(attributes), map_values(numbers)::varchar[])
        )
    end as attributes
)
from stored_spans;

-- A part of requests holds settled ones, or none. What starts and ends it holds are known of newer parts: null stands for its hours.
alter table parts add column is_settled boolean default true;
alter table parts add column first_start timestamptz;
alter table parts add column last_start timestamptz;
alter table parts add column last_end timestamptz;

-- What was measured by blocks stays; blocks that still waited are measured anew, with all that is stored of their hour or part.
create temp table reopened as
select since, until from parts
where relation = 'requests' and exists (
    select 1 from dirty_blocks where block_started_at >= parts.since and block_started_at < parts.until
)
union
select date_trunc('hour', block_started_at), date_trunc('hour', block_started_at) + interval 1 hour from dirty_blocks;
update parts set is_settled = false
where relation = 'requests' and exists (select 1 from reopened r where r.since < parts.until and r.until > parts.since);
update requests_hot set is_settled = false
where exists (select 1 from reopened r where requests_hot.started_at >= r.since and requests_hot.started_at < r.until);
delete from cells
where exists (select 1 from reopened r where cells.block_started_at >= r.since and cells.block_started_at < r.until);
drop table reopened;
delete from dirty_blocks;

-- Closed blocks whose cells changed afterwards, and by how many requests: late ones came, or late legs made them anew.
create table corrections (
    block_started_at timestamptz not null, corrected_at timestamptz not null, added bigint not null, removed bigint not null
);
