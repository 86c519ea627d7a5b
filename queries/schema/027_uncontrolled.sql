-- What a lever is compared with where it has no control arm: rows of `effects` (docs/switchback.md), measured once an hour over the day before
-- `measured_at`. `basis` is `switchback`, a natural experiment's name, or `before_after`; `matched` the share (0 to 1) of requests without the
-- lever that had a match, of a switchback that of the pairs of periods that count. `grade` is how good the comparison is (`good`, `fair`,
-- `poor`, `too little`), `says` what follows from it: `pays`, `loses`, or null for nothing.
create table uncontrolled_effects (
    measured_at timestamptz not null, lever varchar not null, segment varchar not null, metric varchar not null, arm_b varchar,
    since timestamptz not null, until timestamptz not null, blocks bigint not null, n_a bigint not null, n_b bigint not null,
    value_a double, value_b double, gain double, gain_low double, gain_high double, evidence double, method varchar not null,
    basis varchar not null, matched double, note varchar, grade varchar, says varchar
);
-- The hours at which a lever was measured so, whether or not anything was found.
create table uncontrolled_hours (lever varchar not null, measured_at timestamptz not null);

-- `own_value`: treated's value over the two hours before `until`, where `value_a` is of other requests. `premise_evidence`: logarithms of M
-- that a premise lies past each threshold that policies name.
alter table effects add column grade varchar;
alter table effects add column says varchar;
alter table effects add column own_value double;
alter table effects add column premise_evidence struct(threshold double, is_above boolean, log_m double)[];

-- What is kept of each premise between its long blocks: numbers in an order that `layout` names (pipeline/premise_evidence.py).
create table premise_state (
    lever varchar not null, segment varchar not null, metric varchar not null, threshold double not null, is_above boolean not null,
    ended_at timestamptz not null, layout integer not null, log_m double not null, numbers double[] not null
);
