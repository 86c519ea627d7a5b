-- Streams that are not simply in use and whose policy is not loaded any more, or went into the shadow after people were told: the newest change
-- of each, with its notice, and the state that it is in. $policies has each loaded policy, its lever and whether it is in shadow, one of each in
-- its place.
with loaded as (
    select unnest($policies::varchar[]) as policy, unnest($levers::varchar[]) as lever, unnest($shadows::boolean[]) as is_shadow
), standing as (
    select c.policy, c.lever, c.segment, c.state, c.decided_at as judged_at, l.policy is null as is_removed
    from current_verdicts c left join loaded l using (policy, lever)
    where c.state <> 'on' and (l.policy is null or l.is_shadow)
), newest as (
    select * from flips semi join standing using (policy, lever, segment)
    where action is distinct from 'widen'
    qualify row_number() over (partition by policy, lever, segment order by decided_at desc, flip_id) = 1
)
select
    s.policy, s.lever, s.segment, s.state, s.is_removed, greatest(s.judged_at, n.decided_at) as last_at,
    n.flip_id, n.severity, n.shadow, n.notice
from standing s join newest n using (policy, lever, segment)
where s.is_removed or (
    not coalesce(n.shadow, false) and n.action is distinct from 'hold'
    and (s.state = 'off_recommended' or (n.state_after = 'probation' and n.action = 'enable'))
)
order by s.policy, s.lever, s.segment
