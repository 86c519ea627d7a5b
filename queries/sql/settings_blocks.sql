-- The requests of each block from $since to $until by lever, scope and setting, those of control left out; `setting` is null where a request
-- does not state the lever, `off` where it is off. Of each block only what began from $from_s seconds on is read.
with near as (
    select
        time_bucket(to_seconds($block_s), started_at) as block_started_at, model, hardware, topology, levers, arms, count(*) as n
    from requests
    where started_at >= $since and started_at < $until and epoch(started_at) % $block_s >= $from_s
    group by all
), stated as (
    select
        block_started_at, lever, model, hardware, if(list_contains($topology_levers::varchar[], lever), null, topology) as topology,
        arms[lever] as arm, levers[lever] as setting, n
    from near, (select unnest($levers::varchar[]) as lever)
), counted as (
    select
        block_started_at, lever, model, hardware, topology,
        case
            when arm = 'disabled_in_place' or (arm is null and lower(setting) in ('off', 'none', '0', 'disabled', 'false')) then 'off'
            when arm = 'treated' then coalesce(setting, 'on')
            else setting
        end as setting,
        sum(n)::bigint as n
    from stated
    where arm is distinct from 'control'
    group by all
)
select *
from counted
qualify bool_or(setting is not null) over (partition by lever, model, hardware, topology) or lever in (select lever from settings_in_use)
order by block_started_at, lever, model, hardware, topology, setting
