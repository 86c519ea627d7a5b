-- Adds the settings of levers that a batch of spans states where they differ from the setting before, per replica, lever and arm.
insert into lever_settings by name
with stated as (
    select replica, levers, arms, min(started_at) as since from incoming where levers is not null and replica is not null group by all
),
entries as (select replica, arms, since, unnest(map_entries(levers)) as entry from stated),
seen as (
    select replica, entry.key as lever, arms[entry.key] as arm, entry.value as setting, min(since) as since
    from entries where entry.value is not null group by all
),
every as (
    select *, true as is_new from seen
    union all by name
    select k.*, false as is_new from lever_settings k semi join seen s on k.replica = s.replica and k.lever = s.lever
)
select replica, lever, arm, setting, since
from every
qualify is_new and setting is distinct from lag(setting) over (partition by replica, lever, arm order by since, is_new)
order by since
limit 1000;
