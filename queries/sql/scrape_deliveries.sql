-- One row per receiver that was ever sent to: notices that wait, when the oldest of them was put in, and those that were given up, by the newest row of each webhook id.
with newest as (
    select receiver, webhook_id, outcome,
        min(started_at) filter (where attempt = 0 or outcome = 'pending') over (partition by receiver, webhook_id) as put_in_at
    from deliveries where flip_id <> 'test'
    qualify row_number() over (partition by receiver, webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
), last_said as (
    select receiver, arg_max(outcome, rowid) = 'gone' as is_stopped from deliveries where outcome in ('gone', 'delivered') group by all
)
select receiver,
    count(*) filter (where outcome in ('pending', 'retrying')) as waiting,
    min(put_in_at) filter (where outcome in ('pending', 'retrying')) as oldest_put_in_at,
    count(*) filter (where outcome in ('failed', 'gone')) as given_up,
    coalesce(any_value(is_stopped), false) as is_stopped
from newest left join last_said using (receiver)
group by all
order by all
