-- title: What is missing, and why
-- answers: Which columns no engine fills, by engine: the share of requests that have what a core metric needs, and what to set where it
--   is missing.
-- group: Data
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column engine text: the engine; null where none is known
-- column needs text: a column that metrics read
-- column requests count: all
-- column known ratio: of these, that have it
-- column told_by text: where most of the values come from: span, body, log, counter, sample or derived
-- column missing text: what brings it, as the metric's row says; null where all have it
with counted as (
    select
        engine, count(*) as requests,
        [
            {'needs': 'cached_tokens', 'n': count(cached_tokens), 'by': mode(provenance['cached_tokens']), 'metric': 'skipped_token_ratio'},
            {'needs': 'draft_tokens', 'n': count(draft_tokens), 'by': mode(provenance['draft_tokens']), 'metric': 'draft_acceptance'},
            {'needs': 'ttft_s', 'n': count(ttft_s), 'by': mode(provenance['ttft_s']), 'metric': 'ttft_s'},
            {'needs': 'decode_s', 'n': count(decode_s), 'by': mode(provenance['decode_s']), 'metric': 'tpot_s'},
            {'needs': 'prefill_s', 'n': count(prefill_s), 'by': mode(provenance['prefill_s']), 'metric': 'prefill_s'},
            {'needs': 'queue_s', 'n': count(queue_s), 'by': mode(provenance['queue_s']), 'metric': 'queue_s'},
            {'needs': 'output_tokens', 'n': count(output_tokens), 'by': mode(provenance['output_tokens']), 'metric': 'output_length'},
            {'needs': 'kv_transfer_bytes', 'n': count(kv_transfer_bytes), 'by': mode(provenance['kv_transfer_bytes']), 'metric': 'kv_transfer_bytes_per_s'},
            {'needs': 'link_peak_bytes_per_s', 'n': count(link_peak_bytes_per_s), 'by': mode(provenance['link_peak_bytes_per_s']), 'metric': 'interconnect_efficiency'},
            {'needs': 'batch_at_admission', 'n': count(batch_at_admission), 'by': mode(provenance['batch_at_admission']), 'metric': 'batch_at_admission'},
            {'needs': 'kv_usage', 'n': count(kv_usage), 'by': mode(provenance['kv_usage']), 'metric': 'kv_usage'},
            {'needs': 'gpu_s', 'n': count(gpu_s), 'by': mode(provenance['gpu_s']), 'metric': 'gpu_s_per_output_token'}
        ] as columns
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model)
    group by engine
), each_one as (
    select engine, requests, unnest(columns, recursive := true) from counted
)
select
    engine, needs, requests, n / requests as known, "by" as told_by, case when n < requests then missing end as missing
from each_one
left join (select name as metric, missing from metrics) using (metric)
order by known, engine, needs
