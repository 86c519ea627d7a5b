-- Requests of the replicas that ran both with the lever and, before that, without it.
select m.*, if(m.arm = 'treated', 'treated', 'without') as side
from marked m
semi join (
    select replica
    from marked
    where arm is not null
    group by replica
    having min(started_at) filter (where arm = 'treated') > min(started_at) filter (where arm <> 'treated')
) r on m.replica = r.replica
where m.arm is not null
