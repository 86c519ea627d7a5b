-- The traces of this run.
create or replace temp table working_traces as
select distinct trace_id from (from dirty_traces limit $limit_rows)
