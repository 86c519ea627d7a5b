-- Every span of the traces that have something new, with its signals as columns.
select
    trace_id, span_id, parent_span_id, role, dialect, status, started_at, ended_at, duration_s, replica, sender,
    levers, arms, unnest(signals)
from spans
where started_at >= (select min(since) from working_traces)
and started_at <= (select max(until) from working_traces)
and trace_id in (select trace_id from working_traces)
