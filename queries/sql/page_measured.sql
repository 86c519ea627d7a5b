-- In which segments a lever's arms were measured (of any lever), and the start of the newest block of each.
select g.model, g.hardware, g.topology, g.input_bucket, max(c.started_at) as newest_at
from block_cells c
join cell_series s using (series_id)
join cell_segments g using (segment_id)
join cell_metrics m using (metric_id)
where s.lever <> '' and m.metric = 'requests' and c.started_at >= $since::timestamptz and c.started_at < $until::timestamptz
group by all
