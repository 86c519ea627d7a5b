-- The requests of a lever's arms in each segment over a time.
select segment, sum(n)::double as requests
from cells
where lever = $lever and metric = 'requests' and block_started_at >= $since and block_started_at < $until
group by segment
