-- The errors of the treated arm of a lever's segment by replica, in the blocks from $since to $until, and how many requests each replica had.
select replica, sum(num) as errors, sum(den) as requests
from cells
where lever = $lever and segment = $segment and arm = 'treated' and metric = 'error_rate' and replica is not null
    and block_started_at >= $since and block_started_at < $until
group by replica
order by errors desc, replica
