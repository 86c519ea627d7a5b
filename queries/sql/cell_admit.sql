-- The segments of this run (`working_cells`) that are new, as long as there are fewer than $limit_segments; the others wait in `other_segments`.
insert into cell_segments
select
    (coalesce((select max(segment_id) from cell_segments), 0) + row_number() over (order by segment))::integer as segment_id,
    segment, model, hardware, topology, input_bucket, temperature_bucket, tenant
from (
    select distinct segment, model, hardware, topology, input_bucket, temperature_bucket, tenant
    from working_cells
    where segment not in (select segment from cell_segments) and hash(segment) not in (select segment_hash from other_segments)
)
qualify row_number() over (order by segment) <= greatest(0, $limit_segments - (select count(*) from cell_segments where segment_id > 0))
