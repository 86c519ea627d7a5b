-- Who sent spans that a dialect reads, of those that began from $since to $until, and as what.
select replica, dialect, role, count(*) as spans, max(ended_at) as last_seen_at
from spans
where started_at >= $since and started_at <= $until and dialect is not null
group by replica, dialect, role
