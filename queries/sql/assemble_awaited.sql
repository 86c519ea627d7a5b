-- Marks those traces of freshly assembled spans (`incoming`, see pipeline.joining.stated_keys) that share a key with another trace: one
-- that waits for it, or, for a key that seeks or sought before, one that was stored before.
insert into dirty_traces
with asked as (
    select *, seeks or (trace_id, join_key) in (select (trace_id, join_key) from open_keys) as is_sought
    from incoming
),
near as (
    select spans.trace_id, spans.started_at, unnest([spans.signals.join_key, spans.signals.request_id]) as join_key
    from spans
    where spans.role = 'engine'
    and spans.signals.join_key is not null
    and spans.started_at >= (select min(near_since) from asked where is_sought)
    and spans.started_at <= (select max(near_until) from asked where is_sought)
),
shared as (
    select incoming.trace_id, incoming.since, incoming.until
    from incoming
    join open_keys on open_keys.join_key = incoming.join_key and open_keys.trace_id <> incoming.trace_id
    where open_keys.near_since <= incoming.until and open_keys.near_until >= incoming.since
    union all
    select asked.trace_id, asked.since, asked.until
    from asked
    join near on near.join_key = asked.join_key and near.trace_id <> asked.trace_id
    where asked.is_sought and near.started_at between asked.near_since and asked.near_until
)
select trace_id, min(since), max(until)
from shared
group by trace_id
