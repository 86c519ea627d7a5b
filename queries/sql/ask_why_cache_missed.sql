-- title: Why the cache missed
-- answers: Of requests that skipped nothing, the likely reason: the prompt is shorter than one block; its replica threw cached blocks out
--   in the minutes before; another replica served the same tenant from its cache within the hour, so routing missed it; or no prefix is
--   shared.
-- group: Prefix cache
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column reason text: below a block, evicted, held elsewhere, not shared, or not known
-- column requests count: that skipped nothing
-- column of_misses ratio: of the model's misses
-- column prompt_tokens tokens: that were computed
-- column ttft_s s: mean time to the first token
with asked as (
    select model, tenant, replica, started_at, date_trunc('hour', started_at) as hour, cached_tokens, prompt_tokens, kv_block_tokens,
        evicted_tokens, ttft_s
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model)
), hits as (
    select distinct model, tenant, hour, replica from asked where cached_tokens > 0 and tenant is not null
), pressed as (
    select distinct replica, hour from asked where evicted_tokens > 0
), elsewhere as (
    select a.model, a.tenant, a.hour, a.replica
    from (select distinct model, tenant, hour, replica from asked where tenant is not null) a
    where exists (
        from hits h where h.model = a.model and h.tenant = a.tenant and h.hour = a.hour and h.replica is distinct from a.replica
    )
), told as (
    select
        m.model, m.prompt_tokens, m.ttft_s,
        case
            when m.prompt_tokens <= m.kv_block_tokens then 'below a block'
            when p.replica is not null then 'evicted'
            when e.tenant is not null then 'held elsewhere'
            when m.prompt_tokens is null or m.kv_block_tokens is null then 'not known'
            else 'not shared'
        end as reason
    from asked m
    left join pressed p using (replica, hour)
    left join elsewhere e on e.model = m.model and e.tenant = m.tenant and e.hour = m.hour and e.replica is not distinct from m.replica
    where m.cached_tokens = 0
)
select
    model, reason, count(*) as requests, count(*) / sum(count(*)) over (partition by model) as of_misses,
    sum(prompt_tokens)::bigint as prompt_tokens, avg(ttft_s) as ttft_s
from told
group by model, reason
order by model, requests desc
