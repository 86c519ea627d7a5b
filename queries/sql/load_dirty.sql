-- The traces that assembly has to look at again.
insert into dirty_traces
select distinct trace_id from staged where is_new and role is not null and role <> 'housekeeping'
