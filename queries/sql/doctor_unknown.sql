-- The scopes and services of spans that no dialect reads, of those that began from $since to $until, the most frequent first.
select scope, service, count(*) as spans, sum(count(*)) over ()::bigint as of_all
from spans
where started_at >= $since and started_at <= $until and dialect is null
group by scope, service
order by spans desc, scope, service
limit $limit_rows
