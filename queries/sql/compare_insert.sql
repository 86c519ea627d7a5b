-- The effects at one block's end, of segments that have none there yet.
insert into effects by name
select incoming.* from incoming
where not exists (
    select 1 from effects e
    where e.until = incoming.until and e.lever = incoming.lever and e.segment = incoming.segment
)
