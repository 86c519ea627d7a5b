-- Part files that a commit replaced or dropped, and that a reader may still be at: what is left of them at the next start may go.
create table replaced_parts (relation varchar not null, "file" varchar not null);
