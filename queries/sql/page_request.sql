-- The requests with an id, or of a trace with it, that began from $since to $until: the newest first.
select *
from requests
where (request_id = $id or trace_id = lower($id)) and started_at >= $since::timestamptz and started_at < $until::timestamptz
order by started_at desc, request_id
limit 20
