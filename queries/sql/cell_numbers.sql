-- The series of each cell of this run.
select cell, series_id
from placed_cells p
join cell_series s on s.segment_id = p.segment_id and s.lever = p.lever and s.arm = p.arm and s.is_together = p.is_together
    and s.replica is not distinct from p.replica and s.batch_bucket is not distinct from p.batch_bucket
