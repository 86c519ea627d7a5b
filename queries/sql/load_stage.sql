-- The batch at hand, each span marked: is it the first of its kind here, and does the store hold it already?
-- A kept span's start lies within the batch's own range of starts, so only that range of the store is read.
create or replace temp table staged as
with range_of as (select min(start_unix_nano) as first, max(start_unix_nano) as last from incoming),
held as (
    select trace_id, span_id, ended_at, name, duration_s
    from spans
    where start_unix_nano between (select first from range_of) and (select last from range_of)
    and (trace_id, span_id) in (select (trace_id, span_id) from incoming)
)
select
    incoming.*,
    row_number() over copies = 1 and held.trace_id is null as is_new,
    coalesce(held.name, first_value(incoming.name) over copies) <> incoming.name
        or coalesce(held.duration_s, first_value(incoming.duration_s) over copies) <> incoming.duration_s as differs
from incoming
left join held on held.trace_id = incoming.trace_id and held.span_id = incoming.span_id
window copies as (partition by incoming.trace_id, incoming.span_id order by arrival)
