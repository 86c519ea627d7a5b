-- Requests worth a look of those that began from $since to $until: the slowest, the newest that failed, and the nearest to the median time. A
-- key that is null is not asked for, an empty one asks for requests where it is unknown.
with chosen as (
    select request_id, trace_id, started_at, model, replica, outcome, finish_reason, prompt_tokens, output_tokens, ttft_s, e2e_s
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or coalesce(model, '') = $model)
        and ($hardware::varchar is null or coalesce(hardware, '') = $hardware)
        and ($topology::varchar is null or coalesce(topology, '') = $topology)
        and ($input_bucket::varchar is null or coalesce(input_bucket, '') = $input_bucket)
        and ($temperature_bucket::varchar is null or coalesce(temperature_bucket, '') = $temperature_bucket)
        and ($tenant::varchar is null or coalesce(tenant, '') = $tenant)
),
slowest as (select 'slowest' as kind, * from chosen where e2e_s is not null order by e2e_s desc, started_at desc limit $rows::bigint),
failed as (select 'failed' as kind, * from chosen where outcome = 'error' order by started_at desc limit $rows::bigint),
typical as (
    select 'median' as kind, * from chosen
    where e2e_s is not null and outcome = 'ok'
    order by abs(e2e_s - (select median(e2e_s) from chosen where outcome = 'ok')), started_at desc
    limit $rows::bigint
)
from slowest union all from failed union all from typical
