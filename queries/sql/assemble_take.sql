-- The traces of this run, and when their new spans lie. A trace can last for hours and hold many requests: its spans are read within
-- an hour of the new ones, and the requests that began within half an hour of them are replaced.
create or replace temp table working_traces as
select
    trace_id,
    min(since) - interval 1 hour as since, max(until) + interval 1 hour as until,
    min(since) - interval 30 minute as replaced_since, max(until) + interval 30 minute as replaced_until
from (from dirty_traces limit $limit_rows)
group by trace_id
