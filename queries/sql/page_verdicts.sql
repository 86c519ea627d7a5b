-- The latest verdict of each of a lever's streams, and whether its policy is in shadow, so that nobody is told.
select segment, policy, verdict, action, reason_code, reason, state, state_since, decided_at, coalesce(p.shadow, false) as is_shadow
from current_verdicts left join policies p using (policy, lever)
where lever = $lever
