-- Per judging segment of the newest requests: whether one carries any lever's arm or setting, and when the newest began.
select
    model, hardware, topology, input_bucket,
    coalesce(bool_or(cardinality(arms) > 0 or cardinality(levers) > 0), false) as is_marked,
    max(started_at) as newest_at
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
group by all
