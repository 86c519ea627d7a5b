-- Requests of warm replicas, and those from one to ten minutes after a replica that had served nothing for five minutes serves again. When
-- replicas served is read of all requests, by the minute: of a part of them a quiet replica would look idle.
with served as (
    select replica, min(started_at) as first_at, max(started_at) as last_at
    from requests
    where started_at >= $since and started_at < $until and outcome = 'ok' and replica is not null
    group by replica, date_trunc('minute', started_at)
), told as (
    select replica, first_at, lag(last_at) over (partition by replica order by first_at) as before from served
), starts as (
    select replica, first_at as began_at, lead(first_at) over (partition by replica order by first_at) as next_at
    from told
    where first_at - before >= interval 5 minutes
)
select m.*, if(s.began_at is null, 'treated', 'without') as side
from marked m
left join starts s on m.replica = s.replica and m.started_at >= s.began_at and m.started_at < s.began_at + interval 10 minutes
    and m.started_at < coalesce(s.next_at, 'infinity')
where m.arm = 'treated' and m.replica is not null
    and (s.began_at is null or m.started_at >= s.began_at + interval 1 minute)
