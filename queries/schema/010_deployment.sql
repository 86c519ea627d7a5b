-- What the configuration says a link of a topology can carry, in one direction, and what a GPU costs from a time on (null: always).
-- An empty topology or hardware stands for any. Replaced by `serve` at every start.
create table links (topology varchar not null, hardware varchar not null, peak_bytes_per_s double not null);
create table prices (hardware varchar not null, usd_per_gpu_hour double not null, from_time timestamptz);

-- The settings of levers that requests stated, per replica and arm (null: no arm was stated): one row where a setting changes.
create table lever_settings (
    replica varchar not null, lever varchar not null, arm varchar, setting varchar not null, since timestamptz not null
);
