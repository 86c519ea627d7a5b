-- Takes in the traces that state a key of these traces (`incoming`: join_key, since, until, seeks) near the same time: what a seeking
-- key's partners said, and what was waiting for any of the keys. Their requests are made anew together.
insert into working_traces
with near as (
    select spans.trace_id, spans.started_at, unnest([spans.signals.join_key, spans.signals.request_id]) as join_key
    from spans
    where spans.role in ('engine', 'gateway', 'client', 'log', 'body')
    and spans.signals.join_key is not null
    and spans.started_at >= (select min(since) from incoming where seeks) - interval 15 minute
    and spans.started_at <= (select max(until) from incoming where seeks) + interval 1 minute
),
found as (
    select near.trace_id, near.started_at as since, near.started_at as until
    from near
    join incoming on near.join_key = incoming.join_key and incoming.seeks
    where near.started_at between incoming.since - interval 15 minute and incoming.until + interval 1 minute
    union all
    select open_keys.trace_id, open_keys.since, open_keys.since
    from open_keys
    join incoming on open_keys.join_key = incoming.join_key
    where open_keys.since <= incoming.until + interval 1 minute and open_keys.until >= incoming.since - interval 1 minute
)
select
    trace_id,
    min(since) - interval 1 hour as since, max(until) + interval 1 hour as until,
    min(since) - interval 30 minute as replaced_since, max(until) + interval 30 minute as replaced_until
from found
where trace_id not in (select trace_id from working_traces)
group by trace_id
