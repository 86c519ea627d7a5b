-- The replicas that served a lever's arms in each segment.
select segment, replica, bool_or(arm = 'control') as in_control, bool_or(arm <> 'control') as in_others
from cells
where lever = $lever and metric = 'requests' and replica is not null and block_started_at >= $since and block_started_at < $until
group by all
