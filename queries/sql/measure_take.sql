-- The blocks of this run, oldest first; $last is the start of the newest that has ended.
create or replace temp table working_blocks as
select distinct block_started_at from dirty_blocks where block_started_at <= $last order by block_started_at limit $limit_rows
