-- How uneven treated's replicas are in the windows of $window_s seconds that end at $ends: of each lever and segment the largest replica's sum
-- over the mean of all that have any, as a report of the window gives it.
with arms as materialized (select series_id, segment_id, lever, replica from cell_series where lever <> '' and arm = 'treated'),
named as materialized (select metric_id, metric from cell_metrics where metric in (select unnest($metrics))),
ends as materialized (select unnest($ends::timestamptz[]) as ended_at),
by_block as materialized (
    select segment_id, lever, metric_id, replica, started_at, sum(n) as n, sum(num) as num
    from block_cells
    join arms using (series_id)
    join named using (metric_id)
    where started_at >= (select min(ended_at) from ends) - to_seconds($window_s) and started_at < (select max(ended_at) from ends)
    group by all
),
by_replica as (
    select ended_at, segment_id, lever, metric_id, replica, sum(num) as num
    from by_block
    join ends on started_at < ended_at and started_at >= ended_at - to_seconds($window_s)
    group by all
    having sum(n) > 0
)
select ended_at, lever, segment, metric, max(num) / nullif(avg(num), 0) as value
from by_replica
join cell_segments using (segment_id)
join named using (metric_id)
group by all
