-- Who is not told of what, and how long. A matcher that is null matches all, all that are set have to match; words may hold * and ?, and
-- `segment` is JSON text of the keys that a stream's segment must have. `flip_id` is that of a snoozed flip. `ended_at`: ended before its time.
create table silences (
    silence_id varchar not null, lever varchar, policy varchar, segment varchar, receiver varchar, flip_id varchar,
    starts_at timestamptz not null, ends_at timestamptz not null, created_by varchar not null, comment varchar not null,
    created_at timestamptz not null, ended_at timestamptz
);

-- The newest heartbeat to each receiver, one row: when judging had run that it told of, and what came of it.
create table heartbeats (
    receiver varchar not null, webhook_id varchar not null, judged_at timestamptz not null, started_at timestamptz not null,
    ended_at timestamptz not null, outcome varchar not null, status_code bigint, error varchar
);
