-- Treated's sums of what policies watch of levers, in long blocks of $long_s seconds that lie within $since and $until. Of $spreads `num` is the
-- largest replica's and `den` the mean of all that have any.
with watched as materialized (
    select
        lever, segment, metric, replica, metric in (select unnest($spreads)) as is_spread,
        time_bucket(to_seconds($long_s), block_started_at) + to_seconds($long_s) as ended_at, n, num, den, num_sq, den_sq, num_den
    from cells
    where arm = 'treated' and block_started_at >= $since and block_started_at < $until
        and lever in (select unnest($levers)) and metric in (select unnest($metrics))
), by_replica as (
    select lever, segment, metric, ended_at, sum(n) as n, sum(num) as num
    from watched
    where is_spread
    group by lever, segment, metric, ended_at, replica
    having sum(n) > 0
)
select
    lever, segment, metric, ended_at, sum(n)::bigint as n, sum(num) as num, sum(den) as den, sum(num_sq) as num_sq, sum(den_sq) as den_sq,
    sum(num_den) as num_den
from watched
where not is_spread
group by all
union all by name
select
    lever, segment, metric, ended_at, sum(n)::bigint as n, max(num) as num, avg(num) as den, 0.0::double as num_sq, 0.0::double as den_sq,
    0.0::double as num_den
from by_replica
group by all
order by ended_at
