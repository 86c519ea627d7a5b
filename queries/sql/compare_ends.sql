-- The ends of blocks with cells that lie before the mark and were not compared. Late history brings such blocks too: they are held back
-- while more of it waits to be loaded ($late false), so that a block is not compared half full.
select distinct block_started_at + to_seconds($block_s) as block_ended_at
from cells
where block_started_at + to_seconds($block_s) <= $mark
and block_started_at + to_seconds($block_s) not in (select until from closed_blocks)
and ($late or block_started_at + to_seconds($block_s) > coalesce((select max(until) from closed_blocks), timestamptz '1970-01-01 00:00:00+00'))
order by block_ended_at
