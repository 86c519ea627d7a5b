-- The newest flips of a lever and a segment from a time on (what is null takes all); one row per receiver that each was sent to (receiver is null where none was), with the newest attempt.
with latest as (
    select * from flips
    where ($segment::varchar is null or segment = $segment) and ($lever::varchar is null or lever = $lever)
        and ($since::timestamptz is null or decided_at >= $since::timestamptz)
    order by decided_at desc, flip_id limit $flips
),
newest as (
    select * from deliveries
    where flip_id in (select flip_id from latest)
    qualify row_number() over (partition by flip_id, receiver order by attempt desc, (outcome = 'pending') desc) = 1
)
select
    latest.flip_id, latest.policy, latest.lever, latest.segment, latest.state_before, latest.state_after, latest.decided_at, latest.reason,
    latest.notice, coalesce(latest.shadow, false) as is_shadow,
    newest.receiver, newest.outcome, newest.status_code, newest.attempt, newest.error, newest.next_attempt_at,
    coalesce(newest.ended_at, newest.started_at) as attempted_at
from latest left join newest using (flip_id)
order by latest.decided_at desc, latest.flip_id, newest.receiver
