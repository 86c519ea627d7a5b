-- Since when each of these segments is as it is: the last change of the lever's state, or of the engine's version on its model and hardware.
select segment, max(changed_at) as changed_at
from (
    select segment, decided_at as changed_at from flips where lever = $lever
    union all
    select g.segment, d.since as changed_at
    from (select unnest($segments::varchar[]) as segment) g
    join deploys d on d.is_change and (d.model is null or d.model = json_extract_string(g.segment, '$.model'))
        and (d.hardware is null or d.hardware = json_extract_string(g.segment, '$.hardware'))
)
where list_contains($segments::varchar[], segment)
group by segment
