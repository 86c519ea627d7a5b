-- The requests of some levers' segments ($levers, $segments, one of each in its place) in the blocks from $since to $until: of the segment's
-- own arms, of the lever's arms around it (its segments that differ in temperature alone), and of all requests there, marked or not.
with asked as (
    select unnest($levers::varchar[]) as lever, unnest($segments::varchar[]) as segment
), placed as (
    select
        lever, segment, json_merge_patch(segment, '{"temperature_bucket":null}')::varchar as around,
        list_contains($topology_levers::varchar[], lever) as is_topology
    from asked
), places as materialized (
    select segment_id, segment, false as is_topology, json_merge_patch(segment, '{"temperature_bucket":null}')::varchar as around
    from cell_segments
    where json_valid(segment)
    union all
    select segment_id, segment, true, json_merge_patch(segment, '{"topology":null,"temperature_bucket":null}')::varchar
    from cell_segments
    where json_valid(segment)
), series as materialized (
    select p.lever, p.segment, s.series_id, s.arm = 'treated' as is_treated, g.segment = p.segment as is_own, false as is_any
    from placed p
    join places g on g.around = p.around and not g.is_topology
    join cell_series s on s.segment_id = g.segment_id and s.lever = p.lever and not s.is_together
    union all
    select p.lever, p.segment, s.series_id, false as is_treated, false as is_own, true as is_any
    from placed p
    join places g on g.around = p.around and g.is_topology = p.is_topology
    join cell_series s on s.segment_id = g.segment_id and s.lever = '' and not s.is_together
)
select
    lever, segment, started_at + to_seconds($block_s) as until,
    coalesce(sum(n) filter (is_own and is_treated), 0)::bigint as treated_n,
    coalesce(sum(n) filter (is_own), 0)::bigint as own_n,
    coalesce(sum(n) filter (is_treated), 0)::bigint as around_treated_n,
    coalesce(sum(n) filter (not is_any), 0)::bigint as around_marked_n,
    coalesce(sum(n) filter (is_any), 0)::bigint as around_n
from block_cells
join series using (series_id)
where started_at >= $since and started_at < $until and metric_id in (select metric_id from cell_metrics where metric = 'requests')
group by all
order by lever, segment, until
