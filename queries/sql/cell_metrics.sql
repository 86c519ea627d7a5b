-- The metrics (`incoming`) that have no number yet.
insert into cell_metrics
select (coalesce((select max(metric_id) from cell_metrics), 0) + row_number() over (order by place))::smallint, metric
from incoming
where metric not in (select metric from cell_metrics)
