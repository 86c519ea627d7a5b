-- The gain in whole time per output token, waiting and reading included: 1 - treated / control, each a sum over a sum.
with arms as (
    select arms[$lever] as arm, sum(e2e_s) / sum(output_tokens) as token_s
    from requests
    where $segment and started_at >= $since and started_at < $until and outcome = 'ok'
    group by arm
)
select 1 - max(token_s) filter (where arm = 'treated') / max(token_s) filter (where arm = 'control') as value
from arms
