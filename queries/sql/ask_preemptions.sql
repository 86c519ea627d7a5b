-- title: Preemptions and what they cost
-- answers: Whether replicas run out of cache: requests that were thrown out and read anew, by replica and hour, with how full the cache
--   was and how much longer such requests took.
-- group: Load
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column hour moment: the hour that begins then
-- column model text: the model
-- column replica text: the replica
-- column requests count: whose preemptions are known
-- column preempted count: that were thrown out at least once
-- column kv_usage ratio: mean of how full the cache was as requests were admitted
-- column evicted_tokens tokens: of cached prefixes thrown out meanwhile; null where it is not known
-- column e2e_s s: mean time of requests that were not thrown out
-- column preempted_e2e_s s: mean time of those that were
select
    date_trunc('hour', started_at) as hour, model, replica, count(*) as requests, count(*) filter (preemptions > 0) as preempted,
    avg(kv_usage) as kv_usage, sum(evicted_tokens)::bigint as evicted_tokens,
    avg(e2e_s) filter (preemptions = 0) as e2e_s, avg(e2e_s) filter (preemptions > 0) as preempted_e2e_s
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model) and preemptions is not null
group by 1, 2, 3
order by preempted desc, hour desc
limit 1000
