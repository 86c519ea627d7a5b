-- Where rows are kept in a lake (docs/lake.md). Cells go there with the names that numbers stand for in a store.
create view lake_cells as
select
    g.segment, g.model, g.hardware, g.topology, g.input_bucket, g.temperature_bucket, g.tenant,
    s.lever, s.arm, s.replica, s.batch_bucket, s.is_together, c.started_at as block_started_at, m.metric,
    c.known, c.n, c.num, c.den, c.num_sq, c.den_sq, c.num_den, c.times
from block_cells c
join cell_series s using (series_id)
join cell_segments g using (segment_id)
join cell_metrics m using (metric_id);

create view lake_histograms as
select
    g.segment, g.model, g.hardware, g.topology, g.input_bucket, g.temperature_bucket, g.tenant,
    s.lever, s.arm, s.replica, s.batch_bucket, s.is_together, c.started_at as block_started_at, m.metric, c.bins, c.counts
from block_histograms c
join cell_series s using (series_id)
join cell_segments g using (segment_id)
join cell_metrics m using (metric_id);

-- What comparing keeps of a lever after the block that ended at `until`: the rows of one of its tables, as an Arrow stream.
create table comparison_states (lever varchar not null, until timestamptz not null, relation varchar not null, content blob not null);

-- One row per round of `leverwatch work`: up to which watermark (`mark`) and start (`cutoff`) requests were settled, how many hours and
-- requests it took, the processor seconds of its tasks and of what drove them, the versions of the raw tables that it took in, and what failed.
create table lake_rounds (
    started_at timestamptz not null, ended_at timestamptz not null, mark timestamptz, cutoff timestamptz, hours bigint not null,
    requests bigint not null, tasks bigint not null, tasks_cpu_s double not null, driver_cpu_s double not null, workers bigint not null,
    host varchar not null, versions map(varchar, bigint) not null, failed map(varchar, varchar) not null
);

-- How far a server has read each table of its lake, and since when the files of `spans` and `requests` that it has beside it cover them.
create table lake_taken (relation varchar primary key, version bigint not null, since timestamptz, taken_at timestamptz not null);
