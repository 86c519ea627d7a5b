-- The sums of treated and control by hour while streams were recommended off (`incoming_stands`: place, lever, segment, since, until), of what requests,
-- tokens and seconds are made of; `busy_s` is for how long treated had requests. Where the blocks of an hour are gone, the hour stands for them.
with first_block as (
    select min(started_at) as moment from block_cells
), kept as (
    select series_id, started_at, metric_id, n, num, den, 300 as seconds from block_cells
    union all
    select series_id, started_at, metric_id, n, num, den, 3600 as seconds
    from hour_cells
    where started_at < coalesce(date_trunc('hour', (select moment from first_block)), timestamptz '9000-01-01 00:00:00+00')
), named as (
    select i.place, i.since, i.until, s.series_id, s.arm
    from incoming_stands i
    join cell_segments g on g.segment = i.segment
    join cell_series s on s.segment_id = g.segment_id and s.lever = i.lever and s.arm in ('treated', 'control') and not s.is_together
), hourly as (
    select
        place, date_trunc('hour', started_at) as hour, started_at, seconds, arm, metric, sum(n)::double as n, sum(num) as num, sum(den) as den
    from named
    join kept using (series_id)
    join cell_metrics using (metric_id)
    where started_at >= since and started_at + to_seconds(seconds) <= until and metric in ('requests', 'output_length', 'tpot_s', 'ttft_s')
    group by all
)
select
    place, hour, arm, metric, sum(n) as n, sum(num) as num, sum(den) as den,
    sum(seconds) filter (arm = 'treated' and metric = 'requests' and n > 0)::double as busy_s
from hourly
group by all
order by all
