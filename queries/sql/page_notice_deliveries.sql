-- Every attempt to send notices of some flips, and what waits: of each receiver in their order, `is_newest` is how it stands.
select *, row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1 as is_newest
from deliveries where list_contains($flip_ids::varchar[], flip_id)
qualify outcome <> 'pending' or attempt = max(attempt) over (partition by webhook_id)
order by receiver, webhook_id, attempt, outcome = 'pending'
