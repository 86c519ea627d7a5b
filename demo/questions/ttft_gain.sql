-- The gain in time to the first token: 1 - treated / control of the means.
with arms as (
    select arms[$lever] as arm, avg(ttft_s) as ttft_s
    from requests
    where $segment and started_at >= $since and started_at < $until and outcome = 'ok'
    group by arm
)
select 1 - max(ttft_s) filter (where arm = 'treated') / max(ttft_s) filter (where arm = 'control') as value
from arms
