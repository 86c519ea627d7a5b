-- The blocks of this run, oldest first.
create or replace temp table working_blocks as
select distinct block_started_at from dirty_blocks order by block_started_at limit $limit_rows
