-- The ends of blocks with cells that lie before the mark and behind the last block compared.
select distinct block_started_at + to_seconds($block_s) as block_ended_at
from cells
where block_started_at + to_seconds($block_s) <= $mark
and block_started_at + to_seconds($block_s) > coalesce((select max(until) from closed_blocks), timestamptz '1970-01-01 00:00:00+00')
order by block_ended_at
