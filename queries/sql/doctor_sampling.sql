-- Of each replica, spans held against counted requests over the windows from $since to $until, with what the newest window says.
select
    replica, sum(spans)::bigint as spans, sum(counted)::bigint as counted, least(1.0, sum(spans) / sum(counted)) as fraction,
    arg_max(weight, window_started_at) as weight, arg_max(state, window_started_at) as state
from sampling
where window_started_at >= $since and window_started_at <= $until
group by replica
order by replica
