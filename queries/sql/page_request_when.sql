-- When the requests with an id, or of a trace with it, began, of those from $since to $until. One column is looked through at a time: both in
-- one condition would read every column of every row.
with told as (
    select started_at from requests where request_id = $id and started_at >= $since::timestamptz and started_at < $until::timestamptz
    union
    select started_at from requests where trace_id = lower($id) and started_at >= $since::timestamptz and started_at < $until::timestamptz
)
select started_at from told order by started_at desc limit 20
