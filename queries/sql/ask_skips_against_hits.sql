-- title: Skipped tokens against hits
-- answers: Whether a high hit rate means anything: a request that finds its first block is a hit, though all the rest of its prompt is
--   computed anew.
-- group: Prefix cache
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column tenant text: the tenant; null where none is said
-- column requests count: all
-- column known ratio: of these, where cached tokens are known
-- column hit_rate ratio: with any cached token, of the known
-- column skipped_ratio ratio: cached over prompt tokens
-- column attainable_ratio ratio: what a cache that holds every whole block could skip; null where its block size is not known
-- column computed_tokens tokens: of prompts, computed all the same
select
    model, tenant, count(*) as requests,
    count(cached_tokens) / count(*) as known,
    avg((cached_tokens > 0)::int) as hit_rate,
    sum(cached_tokens) / sum(prompt_tokens) filter (cached_tokens is not null) as skipped_ratio,
    sum(floor((prompt_tokens - 1) / kv_block_tokens) * kv_block_tokens) filter (prompt_tokens > 0)
        / sum(prompt_tokens) filter (kv_block_tokens > 0) as attainable_ratio,
    sum(prompt_tokens - cached_tokens)::bigint as computed_tokens
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model)
group by model, tenant
order by computed_tokens desc nulls last, requests desc
limit 1000
