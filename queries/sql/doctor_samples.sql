-- The signals that each replica's samples carried from $since to $until, by which name, and the most that they said.
select replica, engine, signal, min(name) as name, max(coalesce(total, value)) as most
from samples
where signal is not null and observed_at >= $since and observed_at <= $until
group by replica, engine, signal
