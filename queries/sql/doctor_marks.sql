-- What requests that began from $since to $until state of their levers and arms, by replica and engine, and how many state it.
-- Requests that no engine served say nothing of it.
select replica, engine, levers, arms, count(*) as requests
from requests
where started_at >= $since and started_at <= $until and (cardinality(levers) > 0 or cardinality(arms) > 0)
    and (engine is null and outcome in ('error', 'aborted')) is not true
group by all
