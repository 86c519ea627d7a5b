-- Requests of warm replicas, and those from one to ten minutes after a replica that had served nothing for five minutes serves again.
with served as (
    select replica, started_at, lag(started_at) over (partition by replica order by started_at) as before
    from marked
    where replica is not null
), starts as (
    select replica, started_at as began_at, lead(started_at) over (partition by replica order by started_at) as next_at
    from served
    where started_at - before >= interval 5 minutes
)
select m.*, if(s.began_at is null, 'treated', 'without') as side
from marked m
left join starts s on m.replica = s.replica and m.started_at >= s.began_at and m.started_at < s.began_at + interval 10 minutes
    and m.started_at < coalesce(s.next_at, 'infinity')
where m.arm = 'treated' and m.replica is not null
    and (s.began_at is null or m.started_at >= s.began_at + interval 1 minute)
