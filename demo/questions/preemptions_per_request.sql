-- How often a request is thrown out of a full cache and read anew.
select sum(preemptions) / count(*) as value
from requests
where $segment and started_at >= $since and started_at < $until and outcome = 'ok' and levers[$lever] is not null
