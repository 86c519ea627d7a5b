-- The blocks in which these traces' requests lie now: called before and after they are replaced.
insert into dirty_blocks
select distinct time_bucket(to_seconds($block_s), started_at)
from requests
where started_at >= (select min(since) from working_traces)
and started_at <= (select max(until) from working_traces)
and trace_id in (select trace_id from working_traces)
