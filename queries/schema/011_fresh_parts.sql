-- Large batches become parts at once (fresh_parts.py). `level` says how often the rows of a part were merged: 0 is as it was loaded.
alter table parts add column level bigint default 2;

-- Fresh parts of spans whose traces no assembly has seen.
create table dirty_parts ("file" varchar not null);
