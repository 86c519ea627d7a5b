-- Cells as they are kept: sums that add up, under numbers that stand for segments, series and metrics. A row may be a part of its cell: those
-- of one key are summed wherever they are read, until they are folded into one. What was added is taken back by adding it with a minus.

-- The judging segments that are told apart, in the order they came; the one of all the others is {"segment":"other"}.
create table cell_segments (
    segment_id integer not null,
    segment varchar not null,
    model varchar, hardware varchar, topology varchar, input_bucket varchar, temperature_bucket varchar, tenant varchar
);

insert into cell_segments values (0, '{"segment":"other"}', 'other', 'other', 'other', 'other', 'other', 'other');

-- Segments that came when as many as are told apart were there: they count as `other`. A hash of each is enough to know it again.
create table other_segments (segment_hash ubigint not null, first_seen_at timestamptz not null);

-- A series: what a segment's cells of one lever, arm, replica and batch have in common. Lever '' with arm '' holds all requests.
-- `is_together` says that all replicas are in it; elsewhere a null replica is one that nobody named.
create table cell_series (
    series_id integer not null,
    segment_id integer not null,
    lever varchar not null,
    arm varchar not null,
    replica varchar,
    batch_bucket varchar,
    is_together boolean not null
);
create table cell_metrics (metric_id smallint not null, metric varchar not null);

-- Blocks are of 300 s. `known` counts the requests with every input of the metric, `n` those that count; sums are over the latter.
create table block_cells (
    series_id integer not null, started_at timestamptz not null, metric_id smallint not null,
    known bigint not null, n bigint not null, num double not null, den double not null,
    num_sq double not null, den_sq double not null, num_den double not null, times double not null
);
-- Bin b holds values from 2 ms * 1.02^b on and below 2 ms * 1.02^(b + 1), bin -1000 those of 0; `counts` says how many, bin by bin.
create table block_histograms (
    series_id integer not null, started_at timestamptz not null, metric_id smallint not null, bins smallint[] not null, counts bigint[] not null
);

-- The same by the hour and by the day, and of all replicas together by the day (`fleet`) and by the week from Monday on.
create table hour_cells as from block_cells;
create table hour_histograms as from block_histograms;
create table day_cells as from block_cells;
create table day_histograms as from block_histograms;
create table fleet_cells as from block_cells;
create table fleet_histograms as from block_histograms;
create table week_cells as from block_cells;
create table week_histograms as from block_histograms;

-- The hours, days and weeks (`tier`) that have cells, and what became of them (`state`): `open`, `summed` up from what is finer, or
-- `touched`, where late data was added to what had been summed up.
create table cell_periods (tier varchar not null, started_at timestamptz not null, state varchar not null);

-- The cells of before, which held no requests without a lever.
insert into cell_segments
select
    (row_number() over (order by segment))::integer, segment,
    json_extract_string(told, '$.model'), json_extract_string(told, '$.hardware'), json_extract_string(told, '$.topology'),
    json_extract_string(told, '$.input_bucket'), json_extract_string(told, '$.temperature_bucket'), null
from (select distinct segment, case when json_valid(segment) then segment end as told from cells);
insert into cell_series
select (row_number() over (order by segment_id, lever, arm, replica))::integer, segment_id, lever, arm, replica, null, false
from (select distinct segment_id, lever, arm, replica from cells join cell_segments using (segment));
insert into cell_metrics select (row_number() over (order by metric))::smallint, metric from (select distinct metric from cells);
insert into block_cells
select series_id, block_started_at, metric_id, n, n, num, den, num_sq, den_sq, num_den, 0
from cells
join cell_segments using (segment)
join cell_series s using (segment_id, lever, arm)
join cell_metrics using (metric)
where s.replica is not distinct from cells.replica;
insert into cell_periods select distinct 'hour', date_trunc('hour', started_at), 'open' from block_cells;
drop table cells;

-- One row per judging segment, lever, arm, replica, block and metric (and part of it): sums that add up.
-- `segment` is the object of the keys that are set, as JSON text with sorted keys.
create view cells as
select
    g.segment, s.lever, s.arm, s.replica, c.started_at as block_started_at, m.metric,
    c.n, c.num, c.den, c.num_sq, c.den_sq, c.num_den, c.known, c.times, s.batch_bucket
from block_cells c
join cell_series s using (series_id)
join cell_segments g using (segment_id)
join cell_metrics m using (metric_id);

-- How many requests of a cell lie in each bin of a metric. Of a lever's arms they are of all replicas together (`replica` null).
create view cell_histograms as
select
    g.segment, s.lever, s.arm, s.replica, c.started_at as block_started_at, m.metric, unnest(c.bins) as bin, unnest(c.counts) as n
from block_histograms c
join cell_series s using (series_id)
join cell_segments g using (segment_id)
join cell_metrics m using (metric_id);
