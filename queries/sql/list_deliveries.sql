-- Attempts and what waits, newest first; with an outcome, only notices whose newest row has it. A filter that is null takes all. A test that
-- failed was seen to fail by whoever asked for it: it is none of those that were given up. What waits is held until its receiver may be sent to.
with holds as (
    select receiver, max(held_until) as asked_until from deliveries group by all
    having asked_until > $now and asked_until <= $now::timestamptz + interval 1 day
)
select * exclude (asked_until) replace (
    case when outcome in ('pending', 'retrying') and row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
        then asked_until else held_until end as held_until
)
from deliveries left join holds using (receiver)
where ($flip_id::varchar is null or flip_id = $flip_id) and ($receiver::varchar is null or receiver = $receiver)
qualify (outcome <> 'pending' or attempt = max(attempt) over (partition by webhook_id))
    and ($outcome::varchar is null or (outcome = $outcome and (flip_id <> 'test' or outcome = 'delivered' or $flip_id::varchar is not null)
        and row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1))
    and ($since::timestamptz is null or started_at >= $since) and ($until::timestamptz is null or started_at < $until)
order by started_at desc, webhook_id, attempt desc limit $limit
