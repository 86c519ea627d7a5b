-- The series that hold histograms of levers' two arms, all replicas together.
select s.series_id, s.lever, g.segment, s.arm
from cell_series s
join cell_segments g using (segment_id)
where s.lever <> '' and s.arm in ('treated', 'control') and s.is_together
