-- The newest values of each column and reason that were set aside of requests that began from $since to $until, at most so many of each.
select "column", reason, value, replica, request_id, trace_id, started_at
from quarantine
where started_at >= $since::timestamptz and started_at <= $until::timestamptz
qualify row_number() over (partition by "column", reason order by started_at desc, request_id) <= $examples::bigint
order by "column", reason, started_at desc, request_id
