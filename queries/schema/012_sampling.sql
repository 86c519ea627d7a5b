-- How many of a replica's requests sent a span, held against its counter of finished requests: one row per replica and window with a
-- counter. `state`: whole, sampled (sums are multiplied by `weight`), few (too few spans to multiply by: no total is given), excess
-- (more spans than counted: the counter is not of all that the replica serves). `weight` is null where there is none.
create table sampling (
    replica varchar not null, window_started_at timestamptz not null, window_s double not null, spans bigint not null,
    counted bigint not null, fraction double, weight double, state varchar not null, basis varchar not null
);
