-- The traces of this run. The spans of one trace are looked for within an hour of its new ones.
create or replace temp table working_traces as
select trace_id, min(since) - interval 1 hour as since, max(until) + interval 1 hour as until
from (from dirty_traces limit $limit_rows)
group by trace_id
