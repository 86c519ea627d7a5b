-- The share of the cache that is held on the workers that decode, in the mean over requests.
select avg(kv_usage) as value
from requests
where $segment and started_at >= $since and started_at < $until and levers[$lever] is not null
