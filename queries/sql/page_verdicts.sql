-- The latest verdict of each of a lever's streams.
select segment, policy, verdict, action, reason_code, reason, state, state_since, decided_at
from current_verdicts
where lever = $lever
