-- One metric of each of $replicas per bucket of time, from cells; replica null is all of the choice together. A key that is null is not asked
-- for, an empty one asks for requests where it is unknown. Blocks are read; hours, where `is_long`, once they are summed up.
with placed as (
    select s.series_id, s.replica
    from cell_series s join cell_segments g using (segment_id)
    where s.lever = '' and not s.is_together
        and ($model::varchar is null or coalesce(g.model, '') = $model)
        and ($hardware::varchar is null or coalesce(g.hardware, '') = $hardware)
        and ($topology::varchar is null or coalesce(g.topology, '') = $topology)
        and ($input_bucket::varchar is null or coalesce(g.input_bucket, '') = $input_bucket)
        and ($tenant::varchar is null or coalesce(g.tenant, '') = $tenant)
),
summed_up as (select started_at from cell_periods where tier = 'hour' and state <> 'open'),
asked as (select metric_id from cell_metrics where metric = $metric),
read as (
    select series_id, started_at, n, num, den, times from block_cells
    where metric_id in (from asked) and started_at >= $since::timestamptz and started_at < $until::timestamptz
        and (not $is_long::boolean or date_trunc('hour', started_at) not in (from summed_up))
    union all
    select series_id, started_at, n, num, den, times from hour_cells
    where $is_long::boolean and metric_id in (from asked) and started_at >= $since::timestamptz and started_at < $until::timestamptz
        and started_at in (from summed_up)
),
sums as (
    select
        time_bucket(to_seconds($width_s::bigint), r.started_at) as bucket, p.replica,
        sum(r.n) as n, sum(r.num) as num, sum(r.den) as den, sum(r.times) as times
    from read r join placed p using (series_id)
    group by all
),
told as (
    select bucket, replica, n, num, den, times from sums where list_contains($replicas::varchar[], replica)
    union all
    select bucket, null, sum(n), sum(num), sum(den), sum(times) from sums group by bucket
)
select
    bucket, replica, n::bigint as n,
    case $kind::varchar
        when 'ratio' then num / nullif(den, 0)
        when 'product' then num / nullif(n, 0) * times / nullif(den, 0)
        when 'rate' then num / $width_s::double
        else num / nullif(n, 0)
    end as value
from told
where n > 0
order by bucket, replica nulls first
