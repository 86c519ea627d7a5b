-- Of the requests that began from $since to $until and are settled, those that lack a level which a sample of their replica says by now, per
-- replica and column: the sample came after they were settled. $tolerance_s is how old a sample may be as of admission.
with settled as (
    select
        replica, coalesce(prefill_replica, replica) as prefiller, started_at + to_seconds(greatest(coalesce(queue_s, 0), 0)) as admitted_at,
        batch_at_admission, queue_depth, kv_usage
    from requests
    where started_at >= $since and started_at < $until and replica is not null and is_settled is distinct from false
),
lacking as (
    select replica, prefiller as asked_of, admitted_at, 'batch_at_admission' as "column", 'running_requests' as signal
    from settled
    where batch_at_admission is null
    union all
    select replica, prefiller, admitted_at, 'queue_depth', 'queue_depth' from settled where queue_depth is null
    union all
    select replica, replica, admitted_at, 'kv_usage', 'kv_usage' from settled where kv_usage is null
),
said as (
    select distinct replica, signal, observed_at
    from samples
    where observed_at >= $since::timestamptz - to_seconds($tolerance_s) and observed_at < $until and kind = 'gauge'
        and signal in ('running_requests', 'queue_depth', 'kv_usage')
)
select l.replica, l."column", count(*) as requests
from lacking l
asof join said s on s.replica = l.asked_of and s.signal = l.signal and s.observed_at <= l.admitted_at
where s.observed_at >= l.admitted_at - to_seconds($tolerance_s)
group by l.replica, l."column"
order by l.replica, l."column"
