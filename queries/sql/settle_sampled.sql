-- The replicas of whose requests only a part sent spans when it was last looked at: what ran beside a request there is not known.
select replica
from (select replica, state from sampling qualify window_started_at = max(window_started_at) over (partition by replica))
where state in ('sampled', 'few')
