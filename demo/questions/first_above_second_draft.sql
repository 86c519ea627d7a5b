-- By how much more often a step's first draft holds than its second does behind a first that held, in the treated arm.
select sum(accepted_by_position[1]) / sum(verify_steps) - sum(accepted_by_position[2]) / sum(accepted_by_position[1]) as value
from requests
where $segment and started_at >= $since and started_at < $until and verify_steps > 0 and arms[$lever] = 'treated'
