-- title: Net time per token by batch, with and without speculation
-- answers: At which batch a draft stops paying: time per output token of treated and control by the batch that a request met as it was
--   admitted, first tokens that come later counted in.
-- group: Speculation
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column batch_bucket text: sequences that ran on the replica as the request was admitted
-- column treated_requests count: with speculation, answered, of two tokens and more
-- column control_requests count: without
-- column treated_tpot_s s: per output token after the first
-- column treated_net_itl_s s: the same, with what the first token comes later than control's shared among them
-- column control_tpot_s s: per output token after the first
-- column net_itl_gain ratio: 1 - treated / control, positive where speculation pays; null without control
with summed as (
    select
        model, batch_bucket, coalesce(arms['speculation'], case when draft_tokens > 0 then 'treated' end) as arm,
        min(batch_at_admission) as batch, count(*) as n, sum(decode_s) as decode_s, sum(output_tokens - 1) as gaps, avg(ttft_s) as ttft_s
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model) and outcome = 'ok' and decode_s is not null and output_tokens >= 2
    group by all
)
select
    coalesce(t.model, c.model) as model, coalesce(t.batch_bucket, c.batch_bucket) as batch_bucket, t.n as treated_requests, c.n as control_requests, t.decode_s / t.gaps as treated_tpot_s,
    (t.decode_s + t.n * coalesce(greatest(0, t.ttft_s - c.ttft_s), 0)) / t.gaps as treated_net_itl_s,
    c.decode_s / c.gaps as control_tpot_s,
    1 - treated_net_itl_s / control_tpot_s as net_itl_gain
from (from summed where arm = 'treated') t
full join (from summed where arm = 'control') c
    on t.model is not distinct from c.model and t.batch_bucket is not distinct from c.batch_bucket
order by 1, coalesce(t.batch, c.batch) nulls last
