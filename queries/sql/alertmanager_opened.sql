-- What a receiver was told last of the stream of a flip, before that flip.
select f.flip_id, f.state_after, f.action, f.decided_at, f.notice
from flips f
join flips n on n.flip_id = $flip_id and n.policy = f.policy and n.lever = f.lever and n.segment = f.segment
semi join (select flip_id from deliveries where receiver = $receiver and outcome = 'delivered') d on d.flip_id = f.flip_id
where (f.decided_at, f.flip_id) < (n.decided_at, n.flip_id) and f.action is distinct from 'widen'
order by f.decided_at desc, f.flip_id desc
limit 1
