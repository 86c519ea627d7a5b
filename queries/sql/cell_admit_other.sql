-- Notes the segments of this run that came too late to be told apart.
insert into other_segments
select hash(segment), min(block_started_at)
from working_cells
where segment not in (select segment from cell_segments) and hash(segment) not in (select segment_hash from other_segments)
group by segment
order by segment
limit (select greatest(0, $limit_rows - count(*)) from other_segments)
