-- The replicas that served a segment, with its requests of a period (of blocks) by arm of a lever; arm null is all of the segment's requests.
with placed as (
    select s.series_id, s.replica, nullif(s.arm, '') as arm
    from cell_series s join cell_segments g using (segment_id)
    where s.lever in ('', $lever) and not s.is_together
        and ($model::varchar is null or coalesce(g.model, '') = $model)
        and ($hardware::varchar is null or coalesce(g.hardware, '') = $hardware)
        and ($topology::varchar is null or coalesce(g.topology, '') = $topology)
        and ($input_bucket::varchar is null or coalesce(g.input_bucket, '') = $input_bucket)
        and ($temperature_bucket::varchar is null or coalesce(g.temperature_bucket, '') = $temperature_bucket)
        and ($tenant::varchar is null or coalesce(g.tenant, '') = $tenant)
),
sums as (
    select p.replica, p.arm, m.metric, sum(c.n)::bigint as n, sum(c.num) as num, sum(c.den) as den, max(c.started_at) as newest_at
    from block_cells c join placed p using (series_id) join cell_metrics m using (metric_id)
    where c.started_at >= $since::timestamptz and c.started_at < $until::timestamptz
        and m.metric in ('requests', 'tpot_s', 'ttft_s', 'error_rate')
    group by all
)
select
    replica, arm,
    coalesce(max(n) filter (where metric = 'requests'), 0) as n,
    max(num / nullif(den, 0)) filter (where metric = 'tpot_s') as tpot_s,
    max(num / nullif(n, 0)) filter (where metric = 'ttft_s') as ttft_s,
    max(num / nullif(n, 0)) filter (where metric = 'error_rate') as error_rate,
    max(newest_at) as newest_at
from sums
group by all
having n > 0
order by arm desc nulls last, n desc, replica
limit 200
