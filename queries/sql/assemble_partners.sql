-- Takes in the traces that state a key of these traces (`incoming`, see pipeline.joining.stated_keys): what the partners of a key that
-- seeks said, and what was waiting for any of the keys. Their requests are made anew together. A trace that is whole now, and sought before,
-- may have been one request with another: a key that it left open is still asked for.
insert into working_traces
with asked as (
    select *, seeks or (trace_id, join_key) in (select (trace_id, join_key) from open_keys) as is_sought
    from incoming
),
near as (
    select spans.trace_id, spans.started_at, unnest([spans.signals.join_key, spans.signals.request_id]) as join_key
    from near_spans as spans
    where spans.role in ('engine', 'gateway', 'client', 'log', 'body')
    and spans.signals.join_key is not null
    and spans.started_at >= (select min(near_since) from asked where is_sought)
    and spans.started_at <= (select max(near_until) from asked where is_sought)
),
found as (
    select near.trace_id, near.started_at as since
    from near
    join asked on near.join_key = asked.join_key and asked.is_sought
    where near.started_at between asked.near_since and asked.near_until
    union all
    select open_keys.trace_id, open_keys.since
    from open_keys
    join incoming on open_keys.join_key = incoming.join_key
    where open_keys.near_since <= incoming.until and open_keys.near_until >= incoming.since
)
select
    trace_id,
    min(since) - interval 1 hour as since, max(since) + interval 1 hour as until,
    min(since) - interval 30 minute as replaced_since, max(since) + interval 30 minute as replaced_until
from found
where trace_id not in (select trace_id from working_traces)
group by trace_id
