-- The series of all replicas together that are missing.
insert into cell_series
select
    ((select max(series_id) from cell_series) + row_number() over (order by segment_id, lever, arm))::integer,
    segment_id, lever, arm, null, null, true
from (
    select distinct segment_id, lever, arm from cell_series
    except
    select segment_id, lever, arm from cell_series where is_together
)
