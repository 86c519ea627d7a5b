-- The notices to a receiver that were given up, oldest flip first, and whether it has meanwhile been told something newer of the same stream.
with newest as (
    select flip_id, webhook_id, attempt, outcome
    from deliveries where receiver = $receiver
    qualify row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
), told as (
    select f.policy, f.lever, f.segment, max(f.decided_at) as decided_at
    from newest join flips f using (flip_id) where outcome = 'delivered' group by all
)
select w.flip_id, w.webhook_id, w.attempt, coalesce(t.decided_at > f.decided_at, false) as is_superseded
from newest w
join flips f using (flip_id)
left join told t on t.policy = f.policy and t.lever = f.lever and t.segment = f.segment
where w.outcome in ('failed', 'gone')
order by f.decided_at, w.flip_id
