-- The share of the time in which the prefill workers read, each prompt's time counted for itself.
select sum(prefill_s) / count(distinct prefill_replica) / epoch($until - $since) as value
from requests
where $segment and started_at >= $since and started_at < $until and prefill_replica is not null and levers[$lever] is not null
