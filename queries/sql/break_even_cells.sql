-- The cells of a lever's arms by batch as of admission, of blocks from $since to $until; replicas summed.
select
    segment, metric, arm, batch_bucket, block_started_at, sum(n)::double as n, sum(num) as num, sum(den) as den,
    sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from cells
where lever = $lever and batch_bucket is not null and metric = $metric and block_started_at >= $since and block_started_at < $until
group by all
order by all
