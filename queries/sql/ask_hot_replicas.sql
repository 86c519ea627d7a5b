-- title: Hot replicas
-- answers: Whether one replica carries more than its share, as cache affinity makes it: its load over the mean of the replicas that are
--   alike (model, hardware, topology, and the input bucket of most prompts), beside what it skips and how long its first tokens take.
-- group: Routing
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column replica text: the replica
-- column hardware text: its hardware
-- column topology text: its topology
-- column prompts text: the input bucket of most of its prompts
-- column alike count: replicas that it is held against, itself included
-- column requests count: that it answered
-- column of_mean ratio: its requests over the mean of those alike
-- column prompt_tokens tokens: that it was sent
-- column skipped_ratio ratio: cached over prompt tokens
-- column queue_depth count: mean of what waited as requests were admitted
-- column queue_s s: mean time in the queue
-- column ttft_p99_s s: time to the first token that one request in a hundred exceeds
with told as (
    select
        model, replica, hardware, topology, mode(input_bucket) as prompts, count(*) as requests, sum(prompt_tokens)::bigint as prompt_tokens,
        sum(cached_tokens) / sum(prompt_tokens) filter (cached_tokens is not null) as skipped_ratio,
        avg(queue_depth) as queue_depth, avg(queue_s) as queue_s, quantile_cont(ttft_s, 0.99) as ttft_p99_s
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model) and replica is not null
    group by model, replica, hardware, topology
)
select
    model, replica, hardware, topology, prompts, count(*) over alike as alike, requests, requests / avg(requests) over alike as of_mean,
    prompt_tokens, skipped_ratio, queue_depth, queue_s, ttft_p99_s
from told
window alike as (partition by model, hardware, topology, prompts)
order by of_mean desc, model, replica
limit 1000
