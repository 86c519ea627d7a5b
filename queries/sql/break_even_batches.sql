-- The cells of a lever's arms by batch as of admission, of blocks from $since to $until; replicas summed.
select
    lever, segment, metric, arm, batch_bucket as bucket, block_started_at, sum(n)::double as n, sum(num) as num, sum(den) as den,
    sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from cells
where lever = $lever and metric = $metric and batch_bucket is not null and block_started_at >= $since and block_started_at < $until
group by all
order by all
