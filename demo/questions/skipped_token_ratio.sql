-- The share of the treated arm's prompt tokens that were not computed again.
select sum(cached_tokens) / sum(prompt_tokens) as value
from requests
where $segment and started_at >= $since and started_at < $until and cached_tokens is not null and arms[$lever] = 'treated'
