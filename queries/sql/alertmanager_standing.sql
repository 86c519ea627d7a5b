-- What a receiver was told of and what still stands, with what judging says of it now, frozen or not.
with told as (
    select * from flips semi join (select flip_id from deliveries where receiver = $receiver and outcome = 'delivered') d using (flip_id)
    where action is distinct from 'widen'
    qualify row_number() over (partition by policy, lever, segment order by decided_at desc, flip_id) = 1
)
select t.flip_id, t.state_after, t.action, t.decided_at, t.notice, c.verdict, c.reason as reason_now
from told t
join current_verdicts c on c.policy = t.policy and c.lever = t.lever and c.segment = t.segment and c.state = t.state_after
semi join policies p on p.policy = t.policy and p.lever = t.lever
where (t.state_after = 'off_recommended' and t.action is distinct from 'hold') or (t.state_after = 'probation' and t.action = 'enable')
order by t.decided_at, t.flip_id
