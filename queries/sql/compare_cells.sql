-- The cells of a range of blocks, replicas summed: those of some metrics, and the counts of traps; of treated also those of metrics that are
-- told of it alone. Numbers of levers, segments, metrics and arms stand beside their names, so that nobody has to count these again.
with arms as materialized (
    select
        series_id, segment_id, lever, arm, (dense_rank() over (order by lever))::integer as lever_id,
        (dense_rank() over (order by arm))::integer as arm_id
    from cell_series
    where lever <> ''
),
named as materialized (
    select metric_id, metric, metric in (select unnest($metrics)) or metric like 'trap:%' as is_of_both
    from cell_metrics
    where is_of_both or metric in (select unnest($alone))
),
summed as (
    select
        segment_id, lever_id, metric_id, arm_id, started_at, sum(n)::bigint as n, sum(num) as num, sum(den) as den,
        sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
    from block_cells
    join arms using (series_id)
    join named using (metric_id)
    where started_at >= $since and started_at < $until and (is_of_both or arm = 'treated')
    group by all
)
select
    lever, segment, metric, arm, started_at as block_started_at, n, num, den, num_sq, den_sq, num_den, lever_id, segment_id, metric_id, arm_id
from summed
join (select distinct lever_id, lever from arms) using (lever_id)
join (select distinct arm_id, arm from arms) using (arm_id)
join cell_segments using (segment_id)
join named using (metric_id)
