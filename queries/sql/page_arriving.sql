-- What has arrived: stored spans, those of the last minute, requests, and the newest data seen from any sender, with when any came. What parts
-- hold is listed: no file is opened to count it.
select
    (select count(*) from spans_hot) + (select coalesce(sum("rows"), 0) from parts where relation = 'spans')::bigint as spans,
    (select count(*) from stored_spans where received_at >= $minute_ago) as spans_last_minute,
    (select count(*) from requests_hot) + (select coalesce(sum("rows"), 0) from parts where relation = 'requests')::bigint as requests,
    (select max(ended_at) from watermarks) as newest_at,
    (select max(seen_at) from watermarks) as seen_at,
    (select count(*) from watermarks) as senders
