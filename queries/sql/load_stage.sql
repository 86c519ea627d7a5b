-- The batch at hand, each span marked: is it the first of its kind here, and does the store hold it already?
-- A copy of a kept span starts when the span did; a margin about the batch's own starts also finds one whose start was changed.
create or replace temp table staged as
with range_of as (
    select min(start_unix_nano) - $margin_ns as first, max(start_unix_nano) + $margin_ns as last from incoming
),
held as (
    select trace_id, span_id, name, duration_s, status, start_unix_nano, attributes, numbers
    from stored_spans
    where start_unix_nano between (select first from range_of) and (select last from range_of)
    and (trace_id, span_id) in (select (trace_id, span_id) from incoming)
),
paired as (
    select
        incoming.*,
        row_number() over copies as place,
        held.trace_id is not null as is_held,
        (incoming.name, incoming.duration_s, incoming.status, incoming.start_unix_nano, incoming.attributes, incoming.numbers) as content,
        coalesce(
            case
                when held.trace_id is not null
                then (held.name, held.duration_s, held.status, held.start_unix_nano, held.attributes, held.numbers)
            end,
            first_value(content) over copies
        ) as kept
    from incoming
    left join held on held.trace_id = incoming.trace_id and held.span_id = incoming.span_id
    window copies as (partition by incoming.trace_id, incoming.span_id order by arrival)
)
select * exclude (place, is_held, content, kept), place = 1 and not is_held as is_new, content is distinct from kept as differs
from paired
