-- The cells of a lever's arms by segment and block, replicas summed, of some metrics; of all segments where none are named.
select segment, arm, block_started_at, metric, sum(n)::double as n, sum(num) as num, sum(den) as den,
    sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from cells
where lever = $lever and block_started_at >= $since and block_started_at < $until and list_contains($metrics::varchar[], metric)
    and ($segments is null or list_contains($segments::varchar[], segment))
group by all
