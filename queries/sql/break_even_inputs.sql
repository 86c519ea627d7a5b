-- The cells of a lever's arms by input length, of blocks from $since to $until, under the segment without that key; replicas summed.
with summed as (
    select
        lever, segment, metric, arm, block_started_at, sum(n)::double as n, sum(num) as num, sum(den) as den, sum(num_sq) as num_sq,
        sum(den_sq) as den_sq, sum(num_den) as num_den
    from cells
    where lever = $lever and metric = $metric and block_started_at >= $since and block_started_at < $until
    group by all
)
select
    lever, json_merge_patch(segment, '{"input_bucket":null}')::varchar as segment, metric, arm,
    json_extract_string(segment, '$.input_bucket') as bucket, block_started_at, sum(n) as n, sum(num) as num, sum(den) as den,
    sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
from summed
where json_extract_string(segment, '$.input_bucket') is not null
group by all
order by all
