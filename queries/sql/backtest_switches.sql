-- When a replica that served a segment went without a lever that it had before, by its settings: what operators did by themselves.
with changed as (
    select replica, lever, since as switched_at,
        lower(setting) in ('off', 'none', '0', 'disabled', 'false') as is_off,
        lag(is_off) over (partition by replica, lever order by since) as was_off
    from lever_settings
    where arm is distinct from 'control' and list_contains($levers::varchar[], lever)
)
select distinct c.lever, g.segment, c.replica, c.switched_at
from changed c
join cell_series s using (lever, replica)
join cell_segments g using (segment_id)
where c.is_off and not c.was_off and c.switched_at > $since and c.switched_at <= $until
order by c.switched_at, c.lever, g.segment, c.replica
