-- Of each sender the newest span end, the newest arrival, and by how much the first lies behind the second (ahead: below 0).
select sender, ended_at as newest_end_at, seen_at as newest_arrival_at, epoch(seen_at) - epoch(ended_at) as behind_s
from watermarks
order by sender
