-- title: Cost per token
-- answers: What a million tokens cost by model and arm of a lever: GPU seconds that requests had, and money where a price is configured.
-- group: Load
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- param lever text speculation: whose arms are told apart
-- column model text: the model
-- column hardware text: what it runs on
-- column arm text: treated or control of the lever
-- column requests count: whose GPU time is known
-- column gpu_s s: GPU seconds
-- column output_tokens tokens: that these gave
-- column gpu_s_per_1k_tokens s: GPU seconds for a thousand output tokens
-- column usd_per_gpu_hour usd: as configured; null without a price
-- column usd_per_million_tokens usd: for output tokens; null without a price
with priced as (
    select hardware, arg_max(usd_per_gpu_hour, coalesce(from_time, timestamptz '1970-01-01 00:00:00+00')) as usd_per_gpu_hour
    from prices
    where coalesce(from_time, timestamptz '1970-01-01 00:00:00+00') < $until::timestamptz
    group by hardware
), spent as (
    select
        model, hardware, arms[$lever::varchar] as arm, count(*) as requests, sum(gpu_s) as gpu_s,
        sum(output_tokens)::bigint as output_tokens
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model) and gpu_s is not null and output_tokens > 0
    group by all
)
select
    model, hardware, arm, requests, gpu_s, output_tokens, 1000 * gpu_s / output_tokens as gpu_s_per_1k_tokens, usd_per_gpu_hour,
    1e6 * gpu_s * usd_per_gpu_hour / 3600 / output_tokens as usd_per_million_tokens
from spent
left join priced using (hardware)
order by model, hardware, arm
