-- The cells of one arm of a lever in a segment from $since on, by replica: those of some metrics.
select metric, replica, block_started_at, sum(n)::double as n, sum(num) as num, sum(den) as den,
    sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from cells
where lever = $lever and segment = $segment and arm = $arm and replica is not null and block_started_at >= $since
    and metric in (select unnest($metrics))
group by all
order by all
