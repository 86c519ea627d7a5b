-- The oldest newest-end among the senders that still speak, measured against the newest arrival of all.
select min(ended_at) as watermark
from watermarks
where seen_at >= (select max(seen_at) from watermarks) - to_seconds($idle_s)
