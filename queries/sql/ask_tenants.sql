-- title: Tenants
-- answers: Who is served how: load, latency, skipped tokens and errors by tenant, the largest first.
-- group: Traffic
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column tenant text: the tenant; null where none is said
-- column requests count: all
-- column of_tokens ratio: of the model's prompt and output tokens
-- column prompt_tokens tokens: asked
-- column output_tokens tokens: answered
-- column ttft_p95_s s: time to the first token that one request in twenty exceeds
-- column tpot_s s: per output token after the first
-- column skipped_ratio ratio: cached over prompt tokens
-- column error_rate ratio: errors over all that were not aborted
select
    model, tenant, count(*) as requests,
    sum(coalesce(prompt_tokens, 0) + coalesce(output_tokens, 0))
        / nullif(sum(sum(coalesce(prompt_tokens, 0) + coalesce(output_tokens, 0))) over (partition by model), 0) as of_tokens,
    sum(prompt_tokens)::bigint as prompt_tokens, sum(output_tokens)::bigint as output_tokens,
    quantile_cont(ttft_s, 0.95) as ttft_p95_s,
    sum(decode_s) filter (output_tokens >= 2) / sum(output_tokens - 1) filter (decode_s is not null and output_tokens >= 2) as tpot_s,
    sum(cached_tokens) / sum(prompt_tokens) filter (cached_tokens is not null) as skipped_ratio,
    count(*) filter (outcome = 'error') / nullif(count(*) filter (outcome <> 'aborted'), 0) as error_rate
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model)
group by model, tenant
order by of_tokens desc nulls last, requests desc
limit 1000
