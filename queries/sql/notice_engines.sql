-- All requests from $since to $until, and which engines and gateways served those of some replicas; of all replicas where none are named.
with named as (
    select engine, gateway, $replicas::varchar[] is null or list_contains($replicas::varchar[], replica) as is_of
    from requests
    where started_at >= $since and started_at < $until
)
select
    count(*) as requests,
    list(distinct engine order by engine) filter (is_of and engine is not null) as engines,
    list(distinct gateway order by gateway) filter (is_of and gateway is not null) as gateways
from named
