-- Sums of the requests of a lever's arms, by keys that are known before a request is treated and by such that are known only afterwards.
select
    model, hardware, topology, input_bucket, temperature_bucket, tenant, cache_class, output_bucket, concurrency_bucket,
    coalesce(
        arms[$lever],
        case
            when lower(levers[$lever]) in ('off', 'none', '0', 'disabled', 'false') then 'disabled_in_place'
            when levers[$lever] is not null then 'treated'
        end
    ) as arm,
    count(*) filter (where output_tokens >= 2 and decode_s is not null) as tpot_n,
    sum(decode_s) filter (where output_tokens >= 2) as tpot_num,
    sum(output_tokens - 1) filter (where output_tokens >= 2 and decode_s is not null)::double as tpot_den,
    count(ttft_s) as ttft_n, sum(ttft_s) as ttft_num, count(ttft_s)::double as ttft_den,
    count(e2e_s) as e2e_n, sum(e2e_s) as e2e_num, count(e2e_s)::double as e2e_den,
    count(*) filter (where outcome <> 'aborted') as error_n,
    count(*) filter (where outcome = 'error')::double as error_num,
    count(*) filter (where outcome <> 'aborted')::double as error_den
from requests
where started_at >= $since and started_at < $until
group by all
