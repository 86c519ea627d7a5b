-- One row per judging segment, lever, arm, replica, block and metric: sums that add up.
-- `segment` is the object of the keys that are set, as JSON text with sorted keys; blocks are of 300 s.
create table cells (
    segment varchar not null,
    lever varchar not null,
    arm varchar not null,
    replica varchar,
    block_started_at timestamptz not null,
    metric varchar not null,
    n bigint not null,
    num double not null,
    den double not null,
    num_sq double not null,
    den_sq double not null,
    num_den double not null
);

-- One row per lever, segment and metric, at a block's end: the treated arm (arm_a) against control (arm_b).
-- gain is positive when the lever helps; note says why a number is missing.
create table effects (
    lever varchar not null,
    segment varchar not null,
    metric varchar not null,
    arm_a varchar not null,
    arm_b varchar,
    since timestamptz not null,
    until timestamptz not null,
    blocks bigint not null,
    n_a bigint not null,
    n_b bigint not null,
    value_a double,
    value_b double,
    gain double,
    gain_low double,
    gain_high double,
    evidence double,
    method varchar not null,
    basis varchar not null,
    coverage double not null,
    note varchar
);
