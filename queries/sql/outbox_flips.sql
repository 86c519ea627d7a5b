-- The flips of some notices that wait, and which of them is the oldest of its stream there: the others follow it, so that none is told of an end before its beginning.
select flip_id, policy, lever, segment, severity, state_after, action, decided_at,
    row_number() over (partition by policy, lever, segment order by decided_at, flip_id) = 1 as is_first
from flips where list_contains($flip_ids::varchar[], flip_id)
