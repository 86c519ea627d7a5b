-- The blocks in which the imported requests lie.
insert into dirty_blocks
select distinct time_bucket(to_seconds($block_s), started_at) from working_imports
