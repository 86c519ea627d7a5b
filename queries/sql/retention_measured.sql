-- Takes blocks off what waits to be measured, where requests of theirs were dropped and they have cells: those count more than is left.
delete from dirty_blocks
where exists (
    select 1 from retention_log dropped
    where dropped.relation = 'requests' and dropped.since < dirty_blocks.block_started_at + to_seconds($block_s)
    and dropped.until > dirty_blocks.block_started_at
)
and exists (select 1 from cells where cells.block_started_at = dirty_blocks.block_started_at)
