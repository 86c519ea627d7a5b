-- What sets of requests can be told by: replicas and arms of levers that requests had, those of most segments first, at most so many of each.
with told as (
    select 'replica' as key, replica as value, segment_id from cell_series where replica is not null
    union
    select 'arm', arm || ':' || lever, segment_id from cell_series where lever <> ''
),
counted as (
    select key, value, count(*) as segments from told group by all
)
select key, value, segments
from counted
qualify row_number() over (partition by key order by segments desc, value) <= $values
order by key, segments desc, value
