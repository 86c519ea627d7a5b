-- The sums of both sides by stratum, replica and block of $block_s seconds: of two metrics, and of what was met before treatment.
with measured as (
    select *, 'ttft_s' as metric, ttft_s as num, 1.0 as den from sided where ttft_s is not null
    union all
    select *, 'tpot_s' as metric, decode_s as num, (output_tokens - 1)::double as den
    from sided
    where decode_s is not null and output_tokens > 1
)
select
    metric, side, model, hardware, topology, input_bucket, temperature_bucket, batch_bucket, replica,
    time_bucket(to_seconds($block_s), started_at) as block_started_at,
    count(*)::double as n, sum(num) as num, sum(den) as den, sum(num * num) as num_sq, sum(den * den) as den_sq, sum(num * den) as num_den,
    count(prompt_tokens)::double as prompt_n, coalesce(sum(prompt_tokens), 0)::double as prompt_s,
    coalesce(sum(prompt_tokens::double ** 2), 0) as prompt_ss,
    count(batch_at_admission)::double as batch_n, coalesce(sum(batch_at_admission), 0)::double as batch_s,
    coalesce(sum(batch_at_admission::double ** 2), 0) as batch_ss,
    count(queue_depth)::double as queue_n, coalesce(sum(queue_depth), 0)::double as queue_s,
    coalesce(sum(queue_depth::double ** 2), 0) as queue_ss,
    sum(cached_tokens)::double as cached_tokens, sum(prompt_tokens) filter (where cached_tokens is not null)::double as prompt_tokens
from measured
group by all
