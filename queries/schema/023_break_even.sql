-- Where a lever stops paying along a key: the newest of each lever, segment, key and epoch (pipeline/break_even_rows.py). An epoch is the time
-- from `since` on in which what was found still held: in its last row `state` is `stale`, elsewhere `resolved`, `partly`, `not resolved yet`
-- or `refuted`. Lists have one place per bucket; gains are ratios, positive when the lever helps.
create table break_even (
    lever varchar not null, segment varchar not null, "key" varchar not null, metric varchar not null, basis varchar not null,
    since timestamptz not null, until timestamptz not null,
    buckets varchar[] not null, blocks bigint[] not null, gains double[], gains_low double[], gains_high double[], signs varchar[] not null,
    pays_edge bigint, loses_edge bigint, point double, line_point double, state varchar not null, note varchar not null
);

-- What is kept of each of them between blocks: numbers in an order that `layout` names, of these buckets (pipeline/break_even_state.py).
create table break_even_kept (
    lever varchar not null, segment varchar not null, "key" varchar not null, layout integer not null, buckets varchar[] not null,
    since timestamptz not null, until timestamptz not null, numbers double[] not null
);
