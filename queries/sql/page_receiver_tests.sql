-- What came of the newest test of each receiver, and its newest push of standing recommendations.
with tested as (
    select receiver, outcome, status_code, error, coalesce(ended_at, started_at) as tested_at from deliveries where flip_id = 'test'
    qualify row_number() over (partition by receiver order by rowid desc) = 1
)
select coalesce(t.receiver, p.receiver) as receiver, t.outcome as test_outcome, t.status_code as test_status_code, t.error as test_error,
    t.tested_at, p.pushed_at, p.alerts as pushed_alerts, p.status_code as push_status_code, p.error as push_error
from tested t full join alert_pushes p on p.receiver = t.receiver
order by receiver
