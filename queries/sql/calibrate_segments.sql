-- The segments and arms of a lever from $since on, with named replicas: those of the lever's larger arm, and of it those with most requests.
with held as (
    select lever, segment, arm, count(distinct replica) as replicas, sum(n)::bigint as n, min(block_started_at) as since,
        max(block_started_at) as last_block
    from cells
    where lever in (select unnest($levers)) and metric = 'requests' and replica is not null and arm in ('treated', 'control')
        and block_started_at >= $since
    group by all
)
select lever, segment, arm, replicas, n, since, last_block
from held
qualify arm = arg_max(arm, n) over (partition by lever, segment)
    and row_number() over (partition by lever, arm order by least(replicas, $least_replicas) desc, n desc, segment) <= $limit_rows
order by lever, n desc, segment
