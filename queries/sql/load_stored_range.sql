-- When the stored spans began, those included that retention dropped: their requests are still there.
select
    least(min(start_unix_nano), (select epoch_ns(min(since)) from retention_log where relation = 'spans')) as first,
    greatest(max(start_unix_nano), (select epoch_ns(max(until)) from retention_log where relation = 'spans')) as last
from spans
