-- Marks those traces of freshly assembled spans (`incoming`, see pipeline.joining.stated_keys) that share a key with another trace: one
-- that waits for it, or, for a key that seeks, one that was stored before.
insert into dirty_traces
with near as (
    select spans.trace_id, spans.started_at, unnest([spans.signals.join_key, spans.signals.request_id]) as join_key
    from spans
    where spans.role = 'engine'
    and spans.signals.join_key is not null
    and spans.started_at >= (select min(near_since) from incoming where seeks)
    and spans.started_at <= (select max(near_until) from incoming where seeks)
),
shared as (
    select incoming.trace_id, incoming.since, incoming.until
    from incoming
    join open_keys on open_keys.join_key = incoming.join_key and open_keys.trace_id <> incoming.trace_id
    where open_keys.near_since <= incoming.until and open_keys.near_until >= incoming.since
    union all
    select incoming.trace_id, incoming.since, incoming.until
    from incoming
    join near on near.join_key = incoming.join_key and near.trace_id <> incoming.trace_id
    where incoming.seeks and near.started_at between incoming.near_since and incoming.near_until
)
select trace_id, min(since), max(until)
from shared
group by trace_id
