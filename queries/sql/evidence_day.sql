-- The cells of some pairs of lever and segment, of blocks from $since to $until, replicas summed: those of some metrics.
with pairs as (select unnest($levers) as lever, unnest($segments) as segment)
select lever, segment, metric, arm, block_started_at, sum(n)::bigint as n, sum(num) as num, sum(den) as den,
    sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from cells join pairs using (lever, segment)
where block_started_at >= $since and block_started_at < $until and metric in (select unnest($metrics))
group by all
order by all
