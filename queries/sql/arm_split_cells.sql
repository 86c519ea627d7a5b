-- The requests of both arms in some blocks ($starts), one row per lever, segment and block.
select lever, segment, block_started_at,
    coalesce(sum(n) filter (arm = 'treated'), 0)::bigint as treated, coalesce(sum(n) filter (arm = 'control'), 0)::bigint as control
from cells
where block_started_at in (select unnest($starts)) and lever in (select unnest($levers)) and metric = 'requests'
group by all
having treated + control > 0
order by lever, segment
