-- The traces that assembly has to look at again, and when their new spans lie.
-- A span that nobody knows may link a request's legs: it matters to a trace that has a request.
insert into dirty_traces
select trace_id, min(started_at), max(ended_at)
from staged
where is_new and ((role is not null and role <> 'housekeeping') or trace_id in (select trace_id from requests_hot))
group by trace_id
