-- How many blocks each stream of the policies that are to be judged again was judged on since their change, and when it were enough (null: not
-- yet). Streams whose traffic stopped are left out.
select
    r.lever, r.scope, r.changed_at, r.policy, c.segment,
    count(distinct e.until)::bigint as blocks, list_sort(list(distinct e.until))[r.blocks_needed] as enough_at
from revalidations r
join current_verdicts c on c.policy = r.policy and c.lever = r.other_lever and c.reason_code <> 'stale'
left join effects e on e.lever = c.lever and e.segment = c.segment and e.until > r.changed_at and e.until <= c.block_ended_at
    and e.arm_a = 'treated'
where r.done_at is null
group by r.lever, r.scope, r.changed_at, r.policy, r.blocks_needed, c.segment
order by all
