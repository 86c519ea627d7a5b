-- One row per judging segment that is shown and metric: the sums over all arms and replicas of the blocks of a period. The segments with the
-- most requests stand for themselves, up to $limit_segments of them; all others are added up as the segment {"segment":"other"}.
with summed as (
    select s.segment_id, m.metric, sum(c.n)::bigint as n, sum(c.known)::bigint as known, sum(c.num) as num, sum(c.den) as den
    from block_cells c
    join cell_series s using (series_id)
    join cell_metrics m using (metric_id)
    where s.lever = '' and c.started_at >= $since and c.started_at < $until and m.metric in (select unnest($metrics::varchar[]))
    group by all
), places as (
    select segment_id, row_number() over (order by n desc, segment_id) as place
    from summed
    where metric = 'requests' and segment_id <> 0 and n > 0
)
select
    if(p.place <= $limit_segments, g.segment, '{"segment":"other"}') as shown_segment, metric,
    sum(n)::bigint as n, sum(known)::bigint as known, sum(num) as num, sum(den) as den, count(*) as segments
from summed
join cell_segments g using (segment_id)
left join places p using (segment_id)
group by all
order by shown_segment, metric
