-- The share of steps whose first draft holds, in the treated arm.
select sum(accepted_by_position[1]) / sum(verify_steps) as value
from requests
where $segment and started_at >= $since and started_at < $until and verify_steps > 0 and arms[$lever] = 'treated'
