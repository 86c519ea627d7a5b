-- What each replica is and does now: of the requests that began from $since to $until (minutes) those that it answered, with its engine, what
-- its levers are set to and its arms, and of how many another replica had read the prompt (pairs); and how many prompts it read for others.
-- $samples_since bounds its newest gauges.
with near as materialized (
    select
        replica, prefill_replica, prefill_replica is distinct from replica and prefill_replica is not null as is_pair, model, hardware,
        topology, engine, engine_version, levers, arms, started_at
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
),
told as (
    select replica, false as reads, is_pair, model, hardware, topology, engine, engine_version, levers, arms, started_at
    from near
    where replica is not null
    union all
    select prefill_replica, true, true, model, hardware, topology, engine, engine_version, levers, arms, started_at from near where is_pair
),
served as (
    select
        replica, count(*) filter (where not reads) as answered, count(*) filter (where reads) as prefilled,
        count(*) filter (where is_pair and not reads) as pairs,
        arg_max(model, started_at) as model, arg_max(hardware, started_at) as hardware, arg_max(topology, started_at) as topology,
        arg_max(engine, started_at) as engine, arg_max(engine_version, started_at) as engine_version,
        count(distinct engine_version) as versions, arg_max(levers, started_at) as levers, arg_max(arms, started_at) as arms
    from told
    group by replica
),
newest as (
    select replica, signal, engine, value, labels
    from samples
    where observed_at >= $samples_since::timestamptz and observed_at < $until::timestamptz and kind = 'gauge'
        and signal in ('running_requests', 'queue_depth', 'kv_usage')
    qualify row_number() over (partition by replica, signal, labels, sender order by observed_at desc) = 1
),
gauges as (
    select
        replica, any_value(engine) as sampled_engine,
        sum(value) filter (where signal = 'running_requests') as running, sum(value) filter (where signal = 'queue_depth') as waiting,
        avg(value) filter (where signal = 'kv_usage') as kv_usage
    from newest
    group by replica
)
select
    coalesce(s.replica, g.replica) as replica, coalesce(s.answered, 0) as answered, coalesce(s.prefilled, 0) as prefilled,
    coalesce(s.pairs, 0) as pairs, s.model, s.hardware, s.topology,
    coalesce(s.engine, g.sampled_engine) as engine, s.engine_version, coalesce(s.versions, 0) as versions, s.levers, s.arms, g.running,
    g.waiting, g.kv_usage
from served s
full join gauges g on g.replica = s.replica
order by replica
