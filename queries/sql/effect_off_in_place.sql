-- The segments in which a lever was ever deployed and off.
select distinct g.segment
from cell_series s
join cell_segments g using (segment_id)
where s.lever = $lever and s.arm = 'disabled_in_place'
