-- What was set aside of one request as impossible.
select "column", value, reason, trap, upstream
from quarantine
where started_at = $started_at::timestamptz and request_id is not distinct from $request_id and trace_id is not distinct from $trace_id
order by "column", reason
limit 100
