-- The traces of `incoming` as those of this run (see assemble_take.sql).
create or replace temp table working_traces as
select
    trace_id,
    since - interval 1 hour as since, until + interval 1 hour as until,
    since - interval 30 minute as replaced_since, until + interval 30 minute as replaced_until
from incoming
