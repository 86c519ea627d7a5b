-- Takes late spans off what waits for assembly, where spans of their time were dropped and their trace has its request: that was made
-- of more than is left of it, and stays as it is.
delete from dirty_traces
where exists (
    select 1 from retention_log dropped
    where dropped.relation = 'spans' and dropped.since < dirty_traces.until and dropped.until > dirty_traces.since
)
and exists (
    select 1 from requests
    where requests.trace_id = dirty_traces.trace_id
    and requests.started_at between dirty_traces.since - interval 30 minute and dirty_traces.until + interval 30 minute
)
