-- Per judging segment of a period: how many of its requests carry a lever's arm or setting, and when the newest of these began;
-- beside it the end of the newest block whose arms were compared.
select
    model, hardware, topology, input_bucket, temperature_bucket,
    count(*) filter (where arms[$lever] is not null or levers[$lever] is not null) as marked,
    max(started_at) filter (where arms[$lever] is not null or levers[$lever] is not null) as newest_at,
    (select max(until) from closed_blocks) as judged_until
from requests
where started_at >= $since and started_at < $until
group by all
