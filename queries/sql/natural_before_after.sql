-- Requests since each replica's newest setting of $lever, and those of as long before under another; none where it went back and forth.
with told as (
    select replica, arm, coalesce(setting, arm) as setting, started_at from marked where arm is not null and replica is not null
), newest as (
    select replica, arg_max(setting, started_at) as setting from told group by replica having arg_max(arm, started_at) = 'treated'
), changes as (
    select
        t.replica, min(t.started_at) filter (where t.setting = n.setting) as changed_at,
        max(t.started_at) filter (where t.setting <> n.setting) as held_until
    from told t
    join newest n on t.replica = n.replica
    group by t.replica
)
select m.*, if(m.started_at >= c.changed_at, 'treated', 'without') as side
from marked m
join changes c on m.replica = c.replica and c.changed_at > c.held_until
where m.arm is not null and m.started_at >= c.changed_at - ($until::timestamptz - c.changed_at)
