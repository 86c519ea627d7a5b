-- Sums of one segment's requests per bucket of time and arm of a lever, from cells; arm null is all of the segment's requests. A key that is
-- null is not asked for, an empty one asks for requests where it is unknown. Blocks are read; hours, where `is_long`, once they are summed up.
with placed as (
    select s.series_id, nullif(s.arm, '') as arm
    from cell_series s join cell_segments g using (segment_id)
    where s.lever in ('', $lever)
        and ($model::varchar is null or coalesce(g.model, '') = $model)
        and ($hardware::varchar is null or coalesce(g.hardware, '') = $hardware)
        and ($topology::varchar is null or coalesce(g.topology, '') = $topology)
        and ($input_bucket::varchar is null or coalesce(g.input_bucket, '') = $input_bucket)
        and ($temperature_bucket::varchar is null or coalesce(g.temperature_bucket, '') = $temperature_bucket)
        and ($tenant::varchar is null or coalesce(g.tenant, '') = $tenant)
),
asked as (
    select metric_id, metric from cell_metrics
    where metric in (
        'requests', 'tpot_s', 'ttft_s', 'e2e_s', 'draft_acceptance', 'acceptance_length', 'skipped_token_ratio', 'cache_hit_rate',
        'interconnect_efficiency', 'gpu_s_per_output_token'
    )
),
summed_up as (select started_at from cell_periods where tier = 'hour' and state <> 'open'),
read as (
    select series_id, started_at, metric_id, n, num, den from block_cells
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and (not $is_long::boolean or date_trunc('hour', started_at) not in (from summed_up))
    union all
    select series_id, started_at, metric_id, n, num, den from hour_cells
    where $is_long::boolean and started_at >= $since::timestamptz and started_at < $until::timestamptz and started_at in (from summed_up)
),
sums as (
    select
        time_bucket(to_seconds($width_s::bigint), r.started_at) as bucket, p.arm, a.metric,
        sum(r.n)::bigint as n, sum(r.num) as num, sum(r.den) as den
    from read r join placed p using (series_id) join asked a using (metric_id)
    group by all
),
told as (
    select
        bucket, arm,
        coalesce(max(n) filter (where metric = 'requests'), 0) as n,
        coalesce(max(n) filter (where metric = 'tpot_s'), 0) as timed_n,
        max(num) filter (where metric = 'tpot_s') as decode_s,
        max(den) filter (where metric = 'tpot_s') as gaps,
        coalesce(max(n) filter (where metric = 'ttft_s'), 0) as ttft_n,
        max(num / nullif(n, 0)) filter (where metric = 'ttft_s') as ttft_s,
        coalesce(max(n) filter (where metric = 'draft_acceptance'), 0) as drafted_n,
        max(den) filter (where metric = 'draft_acceptance') as draft_tokens,
        max(num) filter (where metric = 'draft_acceptance') as accepted_tokens,
        coalesce(max(n) filter (where metric = 'acceptance_length'), 0) as verified_n,
        max(den) filter (where metric = 'acceptance_length') as verify_steps,
        max(num - den) filter (where metric = 'acceptance_length') as verified_tokens,
        coalesce(max(n) filter (where metric = 'skipped_token_ratio'), 0) as skipped_n,
        max(num) filter (where metric = 'skipped_token_ratio') as cached_tokens,
        max(den) filter (where metric = 'skipped_token_ratio') as prompt_tokens,
        coalesce(max(n) filter (where metric = 'cache_hit_rate'), 0) as hit_n,
        max(num) filter (where metric = 'cache_hit_rate') as hits,
        coalesce(max(n) filter (where metric = 'interconnect_efficiency'), 0) as sent_n,
        max(num) filter (where metric = 'interconnect_efficiency') as sent_bytes,
        max(den) filter (where metric = 'interconnect_efficiency') as sendable_bytes,
        coalesce(max(n) filter (where metric = 'gpu_s_per_output_token'), 0) as gpu_n,
        max(num) filter (where metric = 'gpu_s_per_output_token') as gpu_s,
        max(den) filter (where metric = 'gpu_s_per_output_token') as gpu_tokens
    from sums
    group by all
),
binned as (
    select series_id, started_at, bins, counts from block_histograms
    where metric_id = (select metric_id from asked where metric = 'ttft_s')
        and started_at >= $since::timestamptz and started_at < $until::timestamptz
        and (not $is_long::boolean or date_trunc('hour', started_at) not in (from summed_up))
    union all
    select series_id, started_at, bins, counts from hour_histograms
    where $is_long::boolean and metric_id = (select metric_id from asked where metric = 'ttft_s')
        and started_at >= $since::timestamptz and started_at < $until::timestamptz and started_at in (from summed_up)
),
apart as (
    select time_bucket(to_seconds($width_s::bigint), b.started_at) as bucket, p.arm, unnest(b.bins) as bin, unnest(b.counts) as n
    from binned b join placed p using (series_id)
),
added as (select bucket, arm, bin, sum(n) as n from apart group by all),
upto as (
    select bucket, arm, bin, sum(n) over (partition by bucket, arm order by bin) as upto, sum(n) over (partition by bucket, arm) as total
    from added
),
placed_bins as (
    select
        bucket, arm,
        min(bin) filter (where upto > floor(0.5 * (total - 1))) as p50, min(bin) filter (where upto > floor(0.95 * (total - 1))) as p95
    from upto
    group by all
),
tails as (
    select
        bucket, arm,
        if(p50 <= -1000, 0, 0.002 * pow(1.02, p50 + 0.5)) as ttft_s_p50, if(p95 <= -1000, 0, 0.002 * pow(1.02, p95 + 0.5)) as ttft_s_p95
    from placed_bins
)
select told.*, tails.ttft_s_p50, tails.ttft_s_p95
from told left join tails on tails.bucket = told.bucket and tails.arm is not distinct from told.arm
where told.n > 0
order by told.bucket, told.arm
