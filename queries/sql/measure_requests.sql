-- The requests of the blocks of this run.
select * exclude (accepted_by_position, provenance, flags)
from requests
where started_at >= (select min(block_started_at) from working_blocks)
and started_at < (select max(block_started_at) + to_seconds($block_s) from working_blocks)
and time_bucket(to_seconds($block_s), started_at) in (select block_started_at from working_blocks)
