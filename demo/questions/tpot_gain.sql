-- The gain in time per output token: 1 - treated / control, each a sum over a sum.
with arms as (
    select arms[$lever] as arm, sum(decode_s) / sum(output_tokens - 1) as tpot_s
    from requests
    where $segment and started_at >= $since and started_at < $until and outcome = 'ok' and output_tokens > 1
    group by arm
)
select 1 - max(tpot_s) filter (where arm = 'treated') / max(tpot_s) filter (where arm = 'control') as value
from arms
