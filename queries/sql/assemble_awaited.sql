-- Marks the traces of freshly assembled spans (`incoming`: join_key, trace_id, since, until) that another trace waits for.
insert into dirty_traces
select incoming.trace_id, min(incoming.since), max(incoming.until)
from incoming
join open_keys on open_keys.join_key = incoming.join_key and open_keys.trace_id <> incoming.trace_id
where open_keys.since <= incoming.until + interval 1 minute and open_keys.until >= incoming.since - interval 1 minute
group by incoming.trace_id
