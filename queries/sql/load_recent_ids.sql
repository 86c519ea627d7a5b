-- load_recent_ids
-- The ids of the newest spans, and when those began.
select trace_id, span_id, start_unix_nano
from spans
where start_unix_nano >= $since
