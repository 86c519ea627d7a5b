-- When the stored spans began, those included that retention dropped: their requests are still there. Spans from a clock that runs more than
-- an hour ahead have a range of their own: it would else hold all that is to come.
with dated as (
    select start_unix_nano, start_unix_nano > epoch_ns(received_at) + 3_600_000_000_000 as is_ahead
    from spans
)
select
    least(
        min(start_unix_nano) filter (not is_ahead), (select epoch_ns(min(since)) from retention_log where relation = 'spans')
    ) as first,
    greatest(
        max(start_unix_nano) filter (not is_ahead), (select epoch_ns(max(until)) from retention_log where relation = 'spans')
    ) as last,
    min(start_unix_nano) filter (is_ahead) as first_ahead,
    max(start_unix_nano) filter (is_ahead) as last_ahead
from dated
