-- Compared blocks in which late data put a segment that has no effect there: they are compared again, for that segment.
delete from closed_blocks
where until in (
    select c.block_started_at + to_seconds($block_s)
    from cells c
    where c.block_started_at in (select block_started_at from working_blocks)
    and c.arm = 'treated'
    and not exists (
        select 1 from effects e
        where e.until = c.block_started_at + to_seconds($block_s) and e.lever = c.lever and e.segment = c.segment
    )
)
