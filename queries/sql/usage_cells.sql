-- The requests of some levers' segments ($levers, $segments, one of each in its place) by block, from $since to $until and in the hour before
-- each one's own moment ($moments_s, in seconds): of the segment's own arms, of the lever's arms around it (its segments that differ in
-- temperature alone), and of all requests there, marked or not. `place` is counted from 0; `is_before` says which of both times it is.
with asked as materialized (
    select
        unnest($levers::varchar[]) as lever, unnest($segments::varchar[]) as segment,
        to_timestamp(unnest($moments_s::bigint[])) as moment, unnest(range(len($levers::varchar[])))::integer as place
), placed as (
    select
        *, json_merge_patch(segment, '{"temperature_bucket":null}')::varchar as around,
        list_contains($topology_levers::varchar[], lever) as is_topology
    from asked
), places as materialized (
    select segment_id, segment, false as is_topology, json_merge_patch(segment, '{"temperature_bucket":null}')::varchar as around
    from cell_segments
    where json_valid(segment)
    union all
    select segment_id, segment, true, json_merge_patch(segment, '{"topology":null,"temperature_bucket":null}')::varchar
    from cell_segments
    where json_valid(segment) and exists (select 1 from placed where is_topology)
), series as materialized (
    select p.place, p.moment, s.series_id, s.arm = 'treated' as is_treated, g.segment = p.segment as is_own, false as is_any
    from placed p
    join places g on g.around = p.around and not g.is_topology
    join cell_series s on s.segment_id = g.segment_id and s.lever = p.lever and not s.is_together
    union all
    select p.place, p.moment, s.series_id, false as is_treated, false as is_own, true as is_any
    from placed p
    join places g on g.around = p.around and g.is_topology = p.is_topology
    join cell_series s on s.segment_id = g.segment_id and s.lever = '' and not s.is_together
), counted as (
    select place, moment, started_at, n, is_treated, is_own, is_any
    from block_cells join series using (series_id)
    where metric_id in (select metric_id from cell_metrics where metric = 'requests')
        and started_at >= (select least(min(moment) - to_seconds($before_s), $since) from asked)
        and started_at < (select greatest(max(moment), $until) from asked)
), timed as (
    select * exclude (moment), false as is_before from counted where started_at >= $since and started_at < $until
    union all
    select * exclude (moment), true from counted where started_at >= moment - to_seconds($before_s) and started_at < moment
)
select
    place, is_before, started_at + to_seconds($block_s) as until,
    coalesce(sum(n) filter (is_own and is_treated), 0)::bigint as treated_n,
    coalesce(sum(n) filter (is_own), 0)::bigint as own_n,
    coalesce(sum(n) filter (is_treated), 0)::bigint as around_treated_n,
    coalesce(sum(n) filter (not is_any), 0)::bigint as around_marked_n,
    coalesce(sum(n) filter (is_any), 0)::bigint as around_n
from timed
group by all
order by place, until
