-- What a time series said at one moment. `name` is the sender's own; `signal` is the canonical meaning, where one is known, of `engine`:
-- value and bounds are then in its canonical unit, else in the sender's. Each (replica, name, labels, observed_at) once.
-- `value` is a gauge's level, a counter's total, the sum of a histogram's observations. `counts` are observations per bucket, one more
-- than `bounds`; `total` is their number. `since` is when the counting began. The label leverwatch.temporality = delta says that a
-- counter or histogram covers `since` to `observed_at` alone.
create table samples_hot (
    observed_at timestamptz not null,
    replica varchar not null,
    name varchar not null,
    labels map(varchar, varchar) not null,
    value double,
    kind varchar not null,
    bounds double[],
    counts bigint[],
    total bigint,
    since timestamptz,
    signal varchar,
    engine varchar,
    sender varchar not null,
    received_at timestamptz not null
);
create view samples as select * from samples_hot;

-- One row per quality score. `setting` is the lever's, `original` means unoptimized. `evaluation_id` is made from what was sent.
create table evaluations (
    evaluated_at timestamptz not null,
    suite varchar not null,
    kind varchar not null,
    model varchar,
    lever varchar,
    setting varchar,
    run_id varchar,
    repeat bigint,
    score double not null,
    better varchar not null,
    n bigint,
    temperature double,
    request_id varchar,
    trace_id varchar,
    evaluation_id varchar not null,
    sender varchar not null,
    received_at timestamptz not null
);
