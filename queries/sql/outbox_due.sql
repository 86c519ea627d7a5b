-- What a receiver was not handed yet, oldest first: the newest change of each stream, and advice to widen that came after it; with what the receiver was told of that stream last, but for such advice.
with newest as (
    select flip_id, policy, lever, segment, state_after, action, severity, shadow, decided_at
    from flips
    qualify row_number() over (partition by policy, lever, segment, action is not distinct from 'widen' order by decided_at desc, flip_id) = 1
        and (
            action is distinct from 'widen'
            or decided_at > coalesce(max(decided_at) filter (where action is distinct from 'widen') over (partition by policy, lever, segment), '-infinity')
        )
), told as (
    select policy, lever, segment, arg_max(state_after, decided_at) as told_state, arg_max(coalesce(action, ''), decided_at) as told_action
    from flips semi join (select flip_id from deliveries where receiver = $receiver and outcome = 'delivered') delivered using (flip_id)
    where action is distinct from 'widen'
    group by all
), ending as ( -- of streams whose end waits to be sent: another one is none
    select distinct policy, lever, segment
    from flips semi join (select flip_id from deliveries where receiver = $receiver and outcome = 'pending') waiting using (flip_id)
    where state_after not in ('off_recommended', 'probation') or action = 'hold'
)
select n.*, t.told_state, t.told_action
from newest n
anti join (select flip_id from deliveries where receiver = $receiver) handed using (flip_id)
left join told t on t.policy = n.policy and t.lever = n.lever and t.segment = n.segment
left join ending e on e.policy = n.policy and e.lever = n.lever and e.segment = n.segment
where (t.told_state is not null or n.action = 'widen' or n.state_after in ('off_recommended', 'probation'))
    and (e.policy is null or n.action = 'widen' or (n.state_after in ('off_recommended', 'probation') and n.action is distinct from 'hold'))
order by n.decided_at, n.flip_id
