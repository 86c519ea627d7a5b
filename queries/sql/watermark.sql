-- The oldest newest-end among the senders that still speak, measured against the newest arrival of all. A sender whose clock or history
-- lies far behind the newest is left out: it would hold up every verdict.
select min(ended_at) as watermark
from watermarks
where seen_at >= (select max(seen_at) from watermarks) - to_seconds($idle_s)
and ended_at >= (
    select max(ended_at) from watermarks where seen_at >= (select max(seen_at) from watermarks) - to_seconds($idle_s)
) - to_seconds($behind_s)
