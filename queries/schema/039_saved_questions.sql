-- Questions that people saved, every version of each: the highest version of a name counts, unless it took the question away (`is_deleted`).
-- `params` is JSON text: the default of each parameter, as somebody would type it. `created_by` is who said to be its author.
create table saved_questions (
    name varchar not null, version integer not null, title varchar not null, sql varchar not null, params varchar not null,
    created_by varchar not null, created_at timestamptz not null, is_deleted boolean not null
);
