-- Requests of the replicas that got the lever once and kept it: those on which it goes and comes back are rotated, and no rollout.
select m.*, if(m.arm = 'treated', 'treated', 'without') as side
from marked m
semi join (
    select replica
    from marked
    where arm is not null
    group by replica
    having min(started_at) filter (where arm = 'treated') > max(started_at) filter (where arm <> 'treated')
) r on m.replica = r.replica
where m.arm is not null
