-- The traces of spans that are new for sure, for assembly, and when those lie.
insert into dirty_traces
select trace_id, min(started_at), max(ended_at)
from incoming
where role is not null and role <> 'housekeeping'
group by trace_id
