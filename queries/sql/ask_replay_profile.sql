-- title: A replay profile of traffic
-- answers: What a load generator needs to send traffic like this, without any text: the mix of lengths, how requests arrive, how much of
--   a prompt is shared, and the temperature, by length class.
-- group: Traffic
-- param since moment 6h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column input_bucket text: prompt tokens
-- column output_bucket text: output tokens
-- column requests count: in this class
-- column share ratio: of the model's requests
-- column requests_per_s requests/s: arrivals over the period from its first request to its last
-- column arrival_variation ratio: deviation of the time between arrivals over its mean; 1 is Poisson, above comes in bursts
-- column prompt_p50 tokens: median prompt
-- column prompt_p95 tokens: prompt that one in twenty exceeds
-- column output_p50 tokens: median answer
-- column output_p95 tokens: answer that one in twenty exceeds
-- column shared_p50 tokens: median of prompt tokens found in a cache
-- column tenants count: groups that share prefixes, as told by tenants
-- column temperature ratio: median
with timed as (
    select *, epoch(started_at - lag(started_at) over (partition by model, input_bucket, output_bucket order by started_at)) as gap_s
    from (
        select model, input_bucket, output_bucket, started_at, prompt_tokens, output_tokens, cached_tokens, tenant, temperature
        from requests
        where started_at >= $since::timestamptz and started_at < $until::timestamptz
            and ($model::varchar is null or model = $model)
    )
)
select
    model, input_bucket, output_bucket, count(*) as requests, count(*) / sum(count(*)) over (partition by model) as share,
    count(*) / nullif(epoch(max(started_at) - min(started_at)), 0) as requests_per_s,
    stddev_samp(gap_s) / nullif(avg(gap_s), 0) as arrival_variation,
    median(prompt_tokens) as prompt_p50, quantile_cont(prompt_tokens, 0.95) as prompt_p95,
    median(output_tokens) as output_p50, quantile_cont(output_tokens, 0.95) as output_p95,
    median(cached_tokens) as shared_p50, count(distinct tenant) as tenants, median(temperature) as temperature
from timed
group by model, input_bucket, output_bucket
order by model, min(prompt_tokens) nulls last, min(output_tokens) nulls last
