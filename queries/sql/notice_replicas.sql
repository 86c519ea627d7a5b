-- The requests of a lever's segment by replica and arm, in the blocks from $since to $until.
select replica, arm, sum(n)::double as requests
from cells
where lever = $lever and segment = $segment and metric = 'requests' and block_started_at >= $since and block_started_at < $until
group by all
order by requests desc, replica
