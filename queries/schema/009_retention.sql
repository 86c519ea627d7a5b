-- What retention dropped: rows of a relation from `since` on and before `until`, and why: `age`, `size`, or `disk` where little was free.
-- `bytes` are those of the files that went; null where the rows lay in the database.
create table retention_log (
    relation varchar not null, since timestamptz not null, until timestamptz not null,
    "rows" bigint not null, bytes bigint, reason varchar not null, dropped_at timestamptz not null
);
