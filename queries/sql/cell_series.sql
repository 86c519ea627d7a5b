-- The series of this run that are new.
insert into cell_series
select
    (coalesce((select max(series_id) from cell_series), 0) + row_number() over (order by segment_id, lever, arm, replica, batch_bucket))::integer,
    segment_id, lever, arm, replica, batch_bucket, is_together
from (select distinct segment_id, lever, arm, replica, batch_bucket, is_together from placed_cells) p
where not exists (
    select 1 from cell_series s
    where s.segment_id = p.segment_id and s.lever = p.lever and s.arm = p.arm and s.is_together = p.is_together
    and s.replica is not distinct from p.replica and s.batch_bucket is not distinct from p.batch_bucket
)
