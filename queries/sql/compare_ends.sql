-- The ends of the blocks of this run that were not compared, in order.
select block_started_at + to_seconds($block_s) as block_ended_at
from working_blocks
where block_started_at + to_seconds($block_s) not in (select until from closed_blocks)
order by block_ended_at
