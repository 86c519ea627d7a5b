-- Every span near what is new of the traces that have something new, with its signals as columns; `near_spans` holds those of that time.
select
    trace_id, span_id, parent_span_id, role, dialect, status, started_at, ended_at, duration_s, replica, sender,
    levers, arms, unnest(signals)
from near_spans as spans
semi join working_traces as w on w.trace_id = spans.trace_id and spans.started_at between w.since and w.until
