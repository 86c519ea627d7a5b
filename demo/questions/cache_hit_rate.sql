-- The share of the treated arm's requests with any cached token.
select avg(case when cached_tokens > 0 then 1 else 0 end) as value
from requests
where $segment and started_at >= $since and started_at < $until and cached_tokens is not null and arms[$lever] = 'treated'
