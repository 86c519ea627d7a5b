-- The share of the time to the first token for which prompts wait to be read.
select sum(queue_s) / sum(ttft_s) as value
from requests
where $segment and started_at >= $since and started_at < $until and outcome = 'ok' and levers[$lever] is not null
