-- Requests of warm replicas, and those from one to ten minutes after a replica that had served nothing for five minutes serves again.
with starts as (
    select replica, started_at as began_at
    from (select replica, started_at, lag(started_at) over (partition by replica order by started_at) as before from marked)
    where started_at - before >= interval 5 minutes
), aged as (
    select m.*, m.started_at - s.began_at as age
    from marked m
    asof left join starts s on m.replica = s.replica and m.started_at >= s.began_at
    where m.arm = 'treated' and m.replica is not null
)
select * exclude (age), if(age < interval 10 minutes, 'without', 'treated') as side
from aged
where age is null or age >= interval 1 minute
