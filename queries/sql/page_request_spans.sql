-- The spans of a request around its time: those of its trace, and those of other traces that name its id.
select
    trace_id, span_id, parent_span_id, name, kind, started_at, ended_at, duration_s, status, status_message, scope, service, replica, sender,
    dialect, role, signals, levers, arms, resource, attributes, events, links, received_at
from spans
where started_at >= $since::timestamptz and started_at <= $until::timestamptz
    and (trace_id = $trace_id or signals.request_id = $request_id or signals.join_key = $request_id)
order by started_at, ended_at desc, span_id
limit 200
