-- The traces of spans that are new for sure, for assembly, and when those lie.
-- A span that nobody knows may link a request's legs: it matters to a trace that has a request.
insert into dirty_traces
select trace_id, min(started_at), max(ended_at)
from incoming
where (role is not null and role <> 'housekeeping') or trace_id in (select trace_id from requests_hot)
group by trace_id
