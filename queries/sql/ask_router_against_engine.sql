-- title: The router's belief against the engine
-- answers: Whether the router's index is right: the share of a prompt that it believed to be cached, as llm-d and Dynamo say it, against
--   what the engine skipped for the same request.
-- group: Routing
-- param since moment 6h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column decisions count: requests with both a belief and an engine's word
-- column believed_ratio ratio: mean share that the router believed to be cached
-- column skipped_ratio ratio: mean share that the engine skipped
-- column believed_too_much ratio: of decisions, where the belief was above the engine's by a tenth of the prompt and more
-- column believed_too_little ratio: of decisions, where it was below by as much
-- column lost_tokens tokens: believed to be cached and computed all the same
with believed as (
    select
        trace_id,
        max(least(1, try_cast(coalesce(attributes['llm_d.kv_cache.block_hit_ratio'], attributes['kv_hit_rate']) as double))) as ratio
    from spans
    where started_at >= $since::timestamptz and started_at < $until::timestamptz and dialect in ('llm-d', 'dynamo', 'dynamo_request_trace')
    group by trace_id
), decided as (
    select model, prompt_tokens, ratio as believed, cached_tokens / prompt_tokens as skipped
    from requests
    join (from believed where ratio is not null) using (trace_id)
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model) and cached_tokens is not null and prompt_tokens > 0
)
select
    model, count(*) as decisions, avg(believed) as believed_ratio, avg(skipped) as skipped_ratio,
    avg((believed - skipped >= 0.1)::int) as believed_too_much, avg((skipped - believed >= 0.1)::int) as believed_too_little,
    sum(greatest(0, believed - skipped) * prompt_tokens)::bigint as lost_tokens
from decided
group by model
order by lost_tokens desc
