-- The cells of a range of blocks, replicas summed: those of some metrics, and the counts of traps.
select lever, segment, metric, arm, block_started_at, sum(n)::bigint as n, sum(num) as num, sum(den) as den,
    sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from cells
where block_started_at >= $since and block_started_at < $until and lever <> ''
and (metric in (select unnest($metrics)) or metric like 'trap:%')
group by all
