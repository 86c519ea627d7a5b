-- The blocks whose cells changed and that have closed by $mark, oldest first. Late history brings such blocks too: those that were never
-- compared are held back while more of it waits to be loaded ($late false), so that a block is not compared half full.
create or replace temp table working_blocks as
select distinct block_started_at
from dirty_blocks
where block_started_at + to_seconds($block_s) <= $mark
and (
    $late
    or block_started_at + to_seconds($block_s) in (select until from closed_blocks)
    or block_started_at + to_seconds($block_s) > coalesce((select max(until) from closed_blocks), timestamptz '1970-01-01 00:00:00+00')
)
order by block_started_at
limit $limit_rows
