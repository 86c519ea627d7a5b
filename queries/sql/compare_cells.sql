-- The cells of a range of blocks, replicas summed: those of some metrics, and the counts of traps; of treated also those of metrics that are
-- told of it alone. The numbers of segments and metrics are the store's own.
with arms as materialized (select series_id, segment_id, lever, arm from cell_series where lever <> ''),
named as materialized (
    select metric_id, metric in (select unnest($metrics)) or metric like 'trap:%' as is_of_both
    from cell_metrics
    where is_of_both or metric in (select unnest($alone))
),
summed as (
    select
        segment_id, lever, metric_id, arm, started_at, sum(n)::bigint as n, sum(num) as num, sum(den) as den,
        sum(num_sq) as num_sq, sum(den_sq) as den_sq, sum(num_den) as num_den
    from block_cells
    join arms using (series_id)
    join named using (metric_id)
    where started_at >= $since and started_at < $until and (is_of_both or arm = 'treated')
    group by all
)
select
    lever, segment, metric, arm, started_at as block_started_at, n, num, den, num_sq, den_sq, num_den, segment_id, metric_id
from summed
join cell_segments using (segment_id)
join cell_metrics using (metric_id)
