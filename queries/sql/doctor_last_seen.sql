-- When each replica last served a request, of those that began from $since to $until.
select replica, engine, max(ended_at) as last_seen_at
from requests
where started_at >= $since and started_at < $until
group by all
