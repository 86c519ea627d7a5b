-- What has arrived: stored spans, those of the last minute, requests, and the newest data seen from any sender, with when any came.
select
    (select count(*) from spans) as spans,
    (select count(*) from spans where received_at >= $minute_ago) as spans_last_minute,
    (select count(*) from requests) as requests,
    (select max(ended_at) from watermarks) as newest_at,
    (select max(seen_at) from watermarks) as seen_at,
    (select count(*) from watermarks) as senders
