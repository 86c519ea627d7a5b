-- Which of these segments a lever's arms were measured in, and the start of the newest block of each.
select segment, max(block_started_at) as newest_at
from cells
where lever = $lever and metric = 'requests' and block_started_at >= $since and block_started_at < $until
    and list_contains($segments::varchar[], segment)
group by segment
