-- What replicas' time series were suspected of from $since to $until, the newest first; `since` is when it began.
select replica, "column", trap, upstream, severity, seen, n, since, until
from suspicions
where until >= $since and since <= $until
order by until desc, replica, "column", trap
