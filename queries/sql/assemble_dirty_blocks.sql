-- The blocks in which these traces' requests lie now: called before and after they are replaced.
insert into dirty_blocks
select distinct time_bucket(to_seconds($block_s), started_at)
from requests_hot
where trace_id in (select trace_id from working_traces)
