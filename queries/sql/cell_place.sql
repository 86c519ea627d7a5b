-- The cells of this run with the number of their segment, 0 for one that is not told apart.
create or replace temp table placed_cells as
select cell, coalesce(segment_id, 0) as segment_id, lever, arm, replica, batch_bucket, is_together
from working_cells
left join cell_segments using (segment)
