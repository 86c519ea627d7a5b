-- Traces that cannot be assembled, with the reason; the whole request is meant, so the column is `*`.
insert into quarantine (request_id, trace_id, started_at, "column", value, reason)
select trace_id, trace_id, since + interval 1 hour, '*', null, $reason from working_traces
