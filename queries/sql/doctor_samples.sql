-- The signals that each replica's samples carried from $since to $until, by which name, the most that they said, and when last.
select replica, engine, signal, min(name) as name, max(coalesce(total, value)) as most,
    max(observed_at) as last_seen_at
from samples
where signal is not null and observed_at >= $since and observed_at <= $until
group by replica, engine, signal
