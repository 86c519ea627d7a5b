-- Suspicions that are new: no row of the same replica, trap and column holds their period.
insert into suspicions by name
select incoming.*, $now::timestamptz as suspected_at from incoming
where not exists (
    select 1 from suspicions s
    where s.replica = incoming.replica and s.trap = incoming.trap and s."column" = incoming."column"
    and s.since <= incoming.until and s.until >= incoming.until
)
