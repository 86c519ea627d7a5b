-- The newest flip of each stream that got through to a receiver, and to which ones.
with newest as (
    select flip_id, policy, lever, segment, state_after, action
    from flips
    qualify row_number() over (partition by policy, lever, segment order by decided_at desc, flip_id) = 1
)
select n.flip_id, n.policy, n.lever, n.segment, n.state_after, n.action, d.receiver
from newest n
join deliveries d using (flip_id)
where d.outcome = 'delivered'
group by all
order by n.flip_id, d.receiver
