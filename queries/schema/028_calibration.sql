-- What splits of one arm in two say (`leverwatch calibrate --apply`), the newest of each lever, metric and block length (base blocks of 300 s
-- taken together). `phi` widens the scale of its evidence; null where none up to the widest tried keeps false alarms a cycle within half of
-- alpha. `rates` are those, at each phi tried; `spread` and `neighbors` the deviation of the contrasts at a phi of 1 and the correlation of two
-- in a row.
create table calibrations (
    lever varchar not null, metric varchar not null, blocks_together integer not null, phi double, phis double[] not null,
    rates double[] not null, spread double, neighbors double, contrasts bigint not null, splits integer not null, replicas integer not null,
    segments integer not null, arm varchar not null, since timestamptz not null, until timestamptz not null, calibrated_at timestamptz not null
);

-- The version of an engine that serves most requests of a model on a hardware, from the block on that begins at `since`. The first that was
-- seen is no change; at a change evidence and break-evens begin anew.
create table deploys (
    model varchar, hardware varchar, engine varchar not null, engine_version varchar not null, since timestamptz not null,
    is_change boolean not null
);

-- Whether a day of contrasts was not what their scale says, by their spread and the correlation of two in a row; how many blocks make one
-- contrast at least.
alter table effects add column uncalibrated boolean;
alter table effects add column contrast_spread double;
alter table effects add column contrast_neighbors double;
alter table effects add column blocks_together bigint;
