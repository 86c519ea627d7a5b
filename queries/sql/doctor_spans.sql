-- Who sent spans that began from $since to $until, as what; of spans without a dialect their scope and service.
select
    replica, dialect, role, sender, if(dialect is null, scope, null) as scope, if(dialect is null, service, null) as service,
    count(*) as spans, max(ended_at) as last_seen_at
from spans
where started_at >= $since and started_at <= $until
group by all
