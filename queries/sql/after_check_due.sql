-- The switches that were not checked yet and lie long enough before $until: what was recommended is off, or set otherwise; with the reason code
-- and the time of the recommendation.
select
    f.flip_id, f.policy, f.lever, f.segment, f.decided_at, f.state_after, r.decided_at as recommended_at,
    json_extract_string(r.notice, '$.reason_code') as cause
from flips f
asof join (select * from flips where state_after = 'off_recommended' and action is distinct from 'hold') r
    on r.policy = f.policy and r.lever = f.lever and r.segment = f.segment and r.decided_at < f.decided_at
where f.state_before = 'off_recommended' and f.state_after in ('off', 'probation')
    and f.decided_at <= $until and f.flip_id not in (select flip_id from after_checks)
order by f.decided_at, f.flip_id
limit $limit_rows
