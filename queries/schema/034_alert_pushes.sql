-- The newest push of standing recommendations to each receiver of kind alertmanager, one row: how many alerts, and what came of it.
create table alert_pushes (
    receiver varchar not null, pushed_at timestamptz not null, alerts bigint not null, status_code bigint, error varchar
);
