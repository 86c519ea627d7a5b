-- The requests of a lever's two arms in each segment over a time, and the first block of it that has any.
select segment, sum(n)::double as requests, min(block_started_at) as first_at
from cells
where lever = $lever and arm in ('treated', 'control') and metric = 'requests'
    and block_started_at >= $since and block_started_at < $until
group by segment
