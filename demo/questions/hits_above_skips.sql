-- By how much the treated arm's share of requests with any cached token is above its share of prompt tokens that were skipped.
select avg((cached_tokens > 0)::int) - sum(cached_tokens) / sum(prompt_tokens) as value
from requests
where $segment and started_at >= $since and started_at < $until and cached_tokens is not null and arms[$lever] = 'treated'
