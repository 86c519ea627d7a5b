-- The traces that assembly has to look at again, and when their new spans lie.
insert into dirty_traces
select trace_id, min(started_at), max(ended_at)
from staged
where is_new and role is not null and role <> 'housekeeping'
group by trace_id
