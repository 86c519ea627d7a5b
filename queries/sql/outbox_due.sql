-- What a receiver was not handed yet, oldest first: the newest change of each stream, advice to widen that came after it, and the end of what it was handed that lies between; with what it was told of that stream last, but for such advice.
with changes as (
    select flip_id, policy, lever, segment, state_after, action, severity, shadow, decided_at, action is not distinct from 'widen' as is_widening,
        (state_after = 'off_recommended' and action is distinct from 'hold') or (state_after = 'probation' and action is not distinct from 'enable') as is_opening
    from flips
), newest as (
    select * from changes
    qualify row_number() over (partition by policy, lever, segment, is_widening order by decided_at desc, flip_id) = 1
        and (
            not is_widening
            or decided_at > coalesce(max(decided_at) filter (where not is_widening) over (partition by policy, lever, segment), '-infinity')
        )
), sent as ( -- how each notice stands with the receiver; a replay that waits was delivered once
    select flip_id, bool_or(outcome = 'delivered') as is_delivered,
        bool_or(outcome = 'delivered') or arg_max(outcome, attempt * 2 + (outcome = 'pending')::bigint) in ('pending', 'retrying') as is_heard
    from deliveries where receiver = $receiver group by all
), told as (
    select policy, lever, segment, arg_max(state_after, decided_at) as told_state, arg_max(coalesce(action, ''), decided_at) as told_action
    from changes semi join (select flip_id from sent where is_delivered) delivered using (flip_id)
    where not is_widening
    group by all
), heard as ( -- what it was told last, or will be once it is there again
    select policy, lever, segment, max(decided_at) as heard_at, arg_max(is_opening, decided_at) as is_open,
        arg_max(state_after, decided_at) as told_state, arg_max(coalesce(action, ''), decided_at) as told_action
    from changes semi join (select flip_id from sent where is_heard) waiting using (flip_id)
    where not is_widening
    group by all
), between_both as (
    select c.*, h.told_state, h.told_action
    from changes c
    join newest n on n.policy = c.policy and n.lever = c.lever and n.segment = c.segment and n.is_opening and n.decided_at > c.decided_at
    join heard h on h.policy = c.policy and h.lever = c.lever and h.segment = c.segment and h.is_open and h.heard_at < c.decided_at
    where not c.is_opening and not c.is_widening
    qualify row_number() over (partition by c.policy, c.lever, c.segment order by c.decided_at desc, c.flip_id) = 1
), due as (
    select n.*, t.told_state, t.told_action
    from newest n
    left join told t on t.policy = n.policy and t.lever = n.lever and t.segment = n.segment
    left join heard h on h.policy = n.policy and h.lever = n.lever and h.segment = n.segment
    where n.is_widening or n.is_opening or (h.is_open and t.told_state is not null) -- an end behind an end that waits is none
    union all by name
    from between_both
)
select flip_id, policy, lever, segment, state_after, action, severity, shadow, decided_at, told_state, told_action
from due anti join sent using (flip_id)
order by decided_at, flip_id
