-- Which trap a value fell into and who found it first, beside the reason.
alter table quarantine add column trap varchar;
alter table quarantine add column upstream varchar;
alter table quarantine add column replica varchar;

-- Series of a replica that say what cannot be, or that others contradict: one row per replica, trap and column while it goes on. `n` are
-- requests (or observations) that it touches, `seen` what was seen in numbers. `severity`: quarantined (values of these series were set
-- aside), suspect (values stay, what depends on them is frozen), noted (nothing is made of them).
create table suspicions (
    trap varchar not null, upstream varchar, replica varchar not null, "column" varchar not null,
    since timestamptz not null, until timestamptz not null, n bigint not null, seen varchar not null, severity varchar not null,
    suspected_at timestamptz not null
);

-- What the requests of one settled batch said of their replicas, as sums that add up over batches; `until` is when the last of them began.
-- Held for some minutes, so that a replica's series are held against more requests than one batch has.
create table replica_sums (
    replica varchar not null, until timestamptz not null, model varchar, requests bigint, link_peak double, block bigint, short bigint,
    prompt_n bigint, prompt double, own_n bigint, own_cached double, own_prompt double, drafted_n bigint, own_accepted double,
    own_drafted double, accepted double, steps double, timed_n bigint, tpot_s double, whole_n bigint, whole_s double,
    noted_at timestamptz not null
);

-- The trap that most of an arm's requests of the window fell into, where it touches what the effect is made of, and the share of those
-- that fell into any.
alter table effects add column trap varchar;
alter table effects add column upstream varchar;
alter table effects add column trapped_share double;
