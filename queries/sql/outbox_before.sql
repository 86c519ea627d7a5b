-- What is between two attempts at a receiver and of the same stream as one of some flips: it goes out before them.
with newest as (
    select delivery_id, flip_id, outcome
    from deliveries where receiver = $receiver
    qualify row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
)
select distinct w.delivery_id
from newest w
join flips f using (flip_id)
join (select policy, lever, segment from flips where list_contains($flip_ids::varchar[], flip_id)) n
    on n.policy = f.policy and n.lever = f.lever and n.segment = f.segment
where w.outcome = 'retrying'
