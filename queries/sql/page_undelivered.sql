-- Notices that have not got through, those given up first, the newest first, and how many there are; a failed test is none of them.
with standing as (
    select * from deliveries
    qualify row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
)
select standing.*, flips.lever, flips.policy, flips.segment, flips.state_after, flips.decided_at, count(*) over () as standing_n
from standing left join flips using (flip_id)
where outcome <> 'delivered' and (flip_id <> 'test' or outcome in ('pending', 'retrying'))
order by outcome in ('failed', 'gone') desc, started_at desc, webhook_id limit $notices::bigint
