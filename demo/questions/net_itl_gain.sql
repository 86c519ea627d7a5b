-- The gain in net time per output token: the treated arm's later first tokens are spread over its output tokens.
with arms as (
    select arms[$lever] as arm, count(*) as n, sum(decode_s) as decode_s, sum(output_tokens - 1) as tokens, avg(ttft_s) as ttft_s
    from requests
    where $segment and started_at >= $since and started_at < $until and outcome = 'ok' and output_tokens > 1
    group by arm
), pair as (
    select t.decode_s + t.n * greatest(0, t.ttft_s - c.ttft_s) as treated_s, t.tokens as treated_tokens, c.decode_s / c.tokens as control_s
    from arms as t, arms as c
    where t.arm = 'treated' and c.arm = 'control'
)
select 1 - treated_s / treated_tokens / control_s as value
from pair
