-- Treated's sums of what policies watch of levers, in long blocks of $long_s seconds that lie within $since and $until.
select
    lever, segment, metric, time_bucket(to_seconds($long_s), block_started_at) + to_seconds($long_s) as ended_at,
    sum(n)::bigint as n, sum(num) as num, sum(den) as den, sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from cells
where arm = 'treated' and block_started_at >= $since and block_started_at < $until
    and lever in (select unnest($levers)) and metric in (select unnest($metrics))
group by all
order by ended_at
