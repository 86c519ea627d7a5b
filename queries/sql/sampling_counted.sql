-- How far each replica's counters of finished requests grew in each window, between their first and their last reading there. A counter
-- that fell was set back to nothing; a series that appears beside others began at nothing.
with read as (
    select
        replica, engine, observed_at, value, time_bucket(to_seconds($window_s), observed_at) as window_started_at,
        lag(value) over series as before, lag(observed_at) over series as read_before,
        min(observed_at) over (partition by replica, engine) as known_since
    from samples
    where signal = 'requests_total' and kind = 'counter' and value is not null
    and coalesce(labels['leverwatch.temporality'], '') <> 'delta'
    and observed_at >= $since and observed_at < $until
    window series as (partition by replica, engine, name, labels order by observed_at)
),
grown as (
    select
        *, case
            when before is null and observed_at > known_since then value
            when value >= before then value - before
            when value < before then value
        end as growth
    from read
),
bounds as (
    select replica, engine, window_started_at, min(observed_at) as since, max(observed_at) as until
    from grown
    group by all
)
select bounds.replica, bounds.window_started_at, bounds.since, bounds.until, round(sum(grown.growth))::bigint as counted
from bounds
join grown using (replica, engine, window_started_at)
where grown.observed_at > bounds.since
group by all
having counted > 0
