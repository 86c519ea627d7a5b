-- A tenant's requests on the replica that served at least half of its requests in the hour before, and those on others.
with served as (
    select tenant, model, replica, date_trunc('hour', started_at) as hour, count(*) as requests
    from marked
    where arm = 'treated' and tenant is not null and replica is not null
    group by all
), homes as (
    select tenant, model, hour + interval 1 hour as hour, arg_max(replica, requests) as home
    from served
    group by tenant, model, hour
    having max(requests) >= 10 and max(requests) * 2 >= sum(requests)
)
select m.*, if(m.replica = h.home, 'treated', 'without') as side
from marked m
join homes h on m.tenant = h.tenant and m.model = h.model and date_trunc('hour', m.started_at) = h.hour
where m.arm = 'treated' and m.replica is not null
