-- Errors that ended from $since to $until, once per replica, class and $window_s seconds of each kind of request: when the first one ended.
-- Requests that take longer than $longest_s are not looked for.
select
    model, hardware, topology, input_bucket, temperature_bucket, tenant, replica, coalesce(finish_reason, '') as error_class,
    map_entries(levers) as levers, map_entries(arms) as arms, time_bucket(to_seconds($window_s), ended_at) as window_started_at,
    min({'ended_at': ended_at, 'request_id': request_id}) as "first"
from requests
where
    outcome = 'error' and ended_at >= $since and ended_at < $until and started_at >= $since - to_seconds($longest_s) and started_at < $until
group by all
