-- Per judging segment of the newest requests: whether one carries a lever's arm or setting, and when the newest began.
select
    model, hardware, topology, input_bucket, temperature_bucket,
    coalesce(bool_or(arms[$lever] is not null or levers[$lever] is not null), false) as is_marked,
    max(started_at) as newest_at
from requests
where started_at >= $since and started_at < $until
group by all
