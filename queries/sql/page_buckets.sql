-- Sums of one segment's requests per bucket of time and arm of a lever. A key that is null in the parameters is not asked for;
-- an empty one asks for requests where it is unknown.
select
    time_bucket(to_seconds($width_s), started_at) as bucket,
    arms[$lever] as arm,
    count(*) as n,
    count(*) filter (where decode_s is not null and output_tokens >= 2) as timed_n,
    sum(decode_s) filter (where decode_s is not null and output_tokens >= 2) as decode_s,
    cast(sum(output_tokens - 1) filter (where decode_s is not null and output_tokens >= 2) as double) as gaps,
    count(ttft_s) as ttft_n,
    avg(ttft_s) as ttft_s,
    quantile_cont(ttft_s, 0.5) as ttft_s_p50,
    quantile_cont(ttft_s, 0.95) as ttft_s_p95,
    count(*) filter (where draft_tokens > 0 and accepted_tokens is not null) as drafted_n,
    cast(sum(draft_tokens) filter (where draft_tokens > 0 and accepted_tokens is not null) as double) as draft_tokens,
    cast(sum(accepted_tokens) filter (where draft_tokens > 0 and accepted_tokens is not null) as double) as accepted_tokens,
    count(*) filter (where verify_steps > 0 and accepted_tokens is not null) as verified_n,
    cast(sum(verify_steps) filter (where verify_steps > 0 and accepted_tokens is not null) as double) as verify_steps,
    cast(sum(accepted_tokens) filter (where verify_steps > 0 and accepted_tokens is not null) as double) as verified_tokens
from requests
where started_at >= $since and started_at < $until
    and ($model::varchar is null or coalesce(model, '') = $model)
    and ($hardware::varchar is null or coalesce(hardware, '') = $hardware)
    and ($topology::varchar is null or coalesce(topology, '') = $topology)
    and ($input_bucket::varchar is null or coalesce(input_bucket, '') = $input_bucket)
    and ($temperature_bucket::varchar is null or coalesce(temperature_bucket, '') = $temperature_bucket)
group by all
order by bucket, arm
