-- How each receiver that notices were ever for does: what waits, what was given up, whether it wants no more, until when it asked for nothing (a day at most), its newest delivery and heartbeat.
with newest as (
    select receiver, flip_id, outcome from deliveries
    qualify row_number() over (partition by receiver, webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
), counted as (
    select receiver, count(*) filter (where outcome in ('pending', 'retrying')) as waiting,
        count(*) filter (where outcome in ('failed', 'gone') and flip_id <> 'test') as given_up
    from newest group by all
), heard as (
    select receiver, coalesce(arg_max(outcome, rowid) filter (where outcome in ('gone', 'delivered')) = 'gone', false) as is_stopped,
        max(ended_at) filter (where outcome = 'delivered') as delivered_at, max(held_until) as asked_until
    from deliveries group by all
)
select coalesce(c.receiver, b.receiver) as receiver, coalesce(c.waiting, 0) as waiting, coalesce(c.given_up, 0) as given_up,
    coalesce(h.is_stopped, false) as is_stopped, h.delivered_at,
    case when asked_until > $now and asked_until <= $now::timestamptz + interval 1 day then asked_until end as held_until, b.started_at as heartbeat_at, b.outcome as heartbeat_outcome, b.error as heartbeat_error
from counted c left join heard h using (receiver) full join heartbeats b on b.receiver = c.receiver
order by receiver
