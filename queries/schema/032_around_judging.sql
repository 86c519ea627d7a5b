-- Which setting of a lever most of a scope's treated requests state, one row where another takes over (`is_change`; the first seen is none).
-- A scope is the object of model, hardware and topology (levers that change the topology: without it), as JSON text with sorted keys; `setting`
-- is `off` where treated requests are gone.
create table settings_in_use (
    lever varchar not null, scope varchar not null, setting varchar not null, since timestamptz not null, is_change boolean not null
);
-- Settings on their way: which one most treated requests stated in how many blocks in a row by now. `settings_read` is how far was read.
create table settings_pending (
    lever varchar not null, scope varchar not null, setting varchar not null, since timestamptz not null, streak bigint not null
);
create table settings_read (until timestamptz not null);

-- Levers that are to be judged again since one that shares a budget with them changed: `lever` went from one setting to another in a scope,
-- `policy` of `other_lever` has seen so many blocks since, of the `blocks_needed`. `outcome`, with `done_at`, is `judged`, or `superseded`
-- where the lever changed again before.
create table revalidations (
    lever varchar not null, changed_from varchar not null, changed_to varchar not null, changed_at timestamptz not null,
    scope varchar not null, other_lever varchar not null, policy varchar not null,
    blocks_seen bigint not null, blocks_needed bigint not null, done_at timestamptz, outcome varchar
);

-- Whether switching a lever helped: `metric` of all the segment's requests in the hour after against that of treated ones before; `low` and
-- `high` are of the gain (a ratio, positive: better) of after over before, by blocks. `helped` is null where that does not tell. Before and
-- after differ in more than the lever: shown, never acted on.
create table after_checks (
    flip_id varchar not null, policy varchar not null, lever varchar not null, segment varchar not null, switched_at timestamptz not null,
    metric varchar not null, before double, control_before double, after double, gain double, low double, high double, helped boolean,
    said varchar not null, checked_at timestamptz not null
);
