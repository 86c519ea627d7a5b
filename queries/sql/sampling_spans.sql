-- The engine spans that ended while a replica's counters were looked at, for each window of `sampling_windows`.
select windows.replica, windows.window_started_at, windows.counted, count(spans.span_id) as spans
from sampling_windows as windows
left join near_spans as spans
    on spans.replica = windows.replica and spans.role = 'engine' and spans.ended_at > windows.since and spans.ended_at <= windows.until
    and spans.started_at >= (select min(since) from sampling_windows) - interval 1 hour
    and spans.started_at <= (select max(until) from sampling_windows)
group by all
