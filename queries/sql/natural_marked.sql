-- Requests that began from $since to $until and ended well, each with its arm of $lever, stated or by its setting.
select
    started_at, replica, tenant, model, hardware, topology, input_bucket, temperature_bucket, batch_bucket, prompt_tokens, cached_tokens,
    output_tokens, ttft_s, e2e_s, decode_s, draft_tokens, batch_at_admission, queue_depth,
    coalesce(
        arms[$lever],
        case
            when lower(levers[$lever]) in ('off', 'none', '0', 'disabled', 'false') then 'disabled_in_place'
            when levers[$lever] is not null then 'treated'
        end
    ) as arm,
    levers[$lever] as setting
from requests
where started_at >= $since and started_at < $until and outcome = 'ok'
