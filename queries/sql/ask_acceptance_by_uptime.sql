-- title: Acceptance by how long an engine has run
-- answers: Whether acceptance decays with uptime: drafts that hold by the hours since a replica began to answer; a new engine version, or
--   half an hour without requests, counts as a start.
-- group: Speculation
-- param since moment 7d: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column uptime_hours hours: since the replica's newest start within the period, in steps of one, two, four and so on
-- column replicas count: that were up for so long
-- column requests count: with drafts
-- column accepted_by_token ratio: accepted tokens over drafted ones
-- column tpot_s s: per output token after the first
with blocks as (
    select
        model, replica, engine_version, time_bucket(interval 5 minutes, started_at) as block,
        count(*) filter (draft_tokens > 0 and accepted_tokens is not null) as requests,
        sum(draft_tokens) filter (draft_tokens > 0 and accepted_tokens is not null) as draft_tokens,
        sum(accepted_tokens) filter (draft_tokens > 0) as accepted_tokens,
        sum(decode_s) filter (draft_tokens > 0 and output_tokens >= 2) as decode_s,
        sum(output_tokens - 1) filter (draft_tokens > 0 and decode_s is not null and output_tokens >= 2) as gaps
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model) and replica is not null
    group by all
), marked as (
    select
        *,
        coalesce(
            block - lag(block) over life > interval 30 minutes or engine_version is distinct from lag(engine_version) over life, true
        ) as is_start
    from blocks
    window life as (partition by model, replica order by block, engine_version)
), aged as (
    select *, epoch(block - max(block) filter (is_start) over life) / 3600 as hours
    from marked
    window life as (partition by model, replica order by block, engine_version)
)
select
    model, case when hours < 1 then 0 else pow(2, floor(log2(hours))) end as uptime_hours, count(distinct replica) as replicas,
    sum(requests)::bigint as requests, sum(accepted_tokens) / sum(draft_tokens) as accepted_by_token, sum(decode_s) / sum(gaps) as tpot_s
from aged
where requests > 0
group by 1, 2
order by 1, 2
