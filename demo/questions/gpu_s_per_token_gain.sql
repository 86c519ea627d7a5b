-- The gain in GPU time per output token, idle time left out: 1 - treated / control, each a sum over a sum.
with arms as (
    select arms[$lever] as arm, sum(gpu_s) / sum(output_tokens) as gpu_s_per_token
    from requests
    where $segment and started_at >= $since and started_at < $until and outcome = 'ok' and gpu_s is not null
    group by arm
)
select 1 - max(gpu_s_per_token) filter (where arm = 'treated') / max(gpu_s_per_token) filter (where arm = 'control') as value
from arms
