-- Whether each lever's control arm may decide in each pool, by the newest effects of net ITL from $since to $until; and how it is split.
with newest as (
    select * from effects
    where until > $since and until <= $until and metric = 'net_itl_s' and permission is not null
    qualify until = max(until) over (partition by lever, segment)
)
select
    lever, pool, arg_max(permission, until) as permission, arg_max(permission_reason, until) as reason,
    count(*) as segments, count(*) filter (sample_ratio_off) as segments_off, any_value(intended_control_share) as intended_control_share
from newest join segment_pools using (segment)
group by lever, pool
order by bool_or(newest.permission in ('refused', 'unseen')) desc, lever, pool
