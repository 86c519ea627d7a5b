-- The sums of some metrics in the blocks from $since to $until, of a lever's segment: by arm, and under `any` of all requests there, marked or
-- not (of a segment with a temperature: of all temperatures).
with places as materialized (
    select
        segment_id, segment, json_merge_patch(segment, '{"temperature_bucket":null}')::varchar as around,
        json_merge_patch(segment, '{"topology":null,"temperature_bucket":null}')::varchar as anywhere
    from cell_segments
    where json_valid(segment)
), series as materialized (
    select series_id, arm
    from cell_series
    join places using (segment_id)
    where lever = $lever and segment = $segment and not is_together
    union all
    select series_id, 'any' as arm
    from cell_series
    join places using (segment_id)
    where lever = '' and not is_together
        and if($is_topology, anywhere, around) = json_merge_patch($segment, '{"temperature_bucket":null}')::varchar
)
select arm, started_at as block_started_at, metric, sum(n)::double as n, sum(num) as num, sum(den) as den
from block_cells
join series using (series_id)
join cell_metrics using (metric_id)
where started_at >= $since and started_at < $until and list_contains($metrics::varchar[], metric)
group by all
order by all
