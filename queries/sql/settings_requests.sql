-- How many requests began from $since to $until, as cells count them.
select coalesce(sum(n), 0)::bigint as n
from cells
where lever = '' and metric = 'requests' and block_started_at >= $since and block_started_at < $until
