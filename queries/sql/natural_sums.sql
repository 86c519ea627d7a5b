-- The sums of both sides by experiment, segment (of $keys), stratum and block of $block_s seconds: of three metrics, and of what was met before
-- treatment. By replica only where replicas are measured by their own level; before and after by the hour. Segments without three blocks in
-- which both sides have requests compare with nothing and are left out.
with two_sided as (
    select experiment, model, hardware, input_bucket from sided group by all having min(side) <> max(side)
), compared as (
    select s.*
    from sided s
    semi join two_sided b on s.experiment = b.experiment and s.model is not distinct from b.model
        and s.hardware is not distinct from b.hardware and s.input_bucket is not distinct from b.input_bucket
), measured as (
    select *, 'ttft_s' as metric, ttft_s as num, 1.0 as den from compared where ttft_s is not null
    union all
    select *, 'tpot_s' as metric, decode_s as num, (output_tokens - 1)::double as den
    from compared
    where decode_s is not null and output_tokens > 1
    union all
    select *, 'e2e_s' as metric, e2e_s as num, 1.0 as den from compared where e2e_s is not null
), summed as (
    select
        experiment, metric, side, model, hardware, if(list_contains($keys, 'topology'), topology, null) as topology, input_bucket,
        if(list_contains($keys, 'temperature_bucket'), temperature_bucket, null) as temperature_bucket,
        if(list_contains($keys, 'tenant'), tenant, null) as tenant,
        if(experiment in ('rollouts', 'before_after'), null, batch_bucket) as batch_bucket,
        if(experiment = 'rollouts', replica, null) as replica,
        time_bucket(to_seconds(if(experiment = 'before_after', 3600, $block_s)), started_at) as block_started_at,
        count(*)::double as n, sum(num) as num, sum(den) as den,
        sum(num * num) as num_sq, sum(den * den) as den_sq, sum(num * den) as num_den,
        count(prompt_tokens)::double as prompt_n, coalesce(sum(prompt_tokens), 0)::double as prompt_s,
        coalesce(sum(prompt_tokens::double ** 2), 0) as prompt_ss,
        count(batch_at_admission)::double as batch_n, coalesce(sum(batch_at_admission), 0)::double as batch_s,
        coalesce(sum(batch_at_admission::double ** 2), 0) as batch_ss,
        count(queue_depth)::double as queue_n, coalesce(sum(queue_depth), 0)::double as queue_s,
        coalesce(sum(queue_depth::double ** 2), 0) as queue_ss,
        sum(cached_tokens)::double as cached_tokens, sum(prompt_tokens) filter (where cached_tokens is not null)::double as prompt_tokens
    from measured
    group by all
), met as (
    select experiment, metric, model, hardware, topology, input_bucket, temperature_bucket, tenant, block_started_at
    from summed
    group by experiment, metric, model, hardware, topology, input_bucket, temperature_bucket, tenant, batch_bucket, block_started_at
    having least(sum(n) filter (where side = 'treated'), sum(n) filter (where side = 'without')) >= 5
), comparable as (
    select experiment, metric, model, hardware, topology, input_bucket, temperature_bucket, tenant
    from met
    group by all
    having count(distinct block_started_at) >= 3
    union
    select experiment, metric, model, hardware, topology, input_bucket, temperature_bucket, tenant
    from summed
    where experiment = 'before_after'
    group by all
    having min(side) <> max(side)
)
select s.*
from summed s
semi join comparable c on s.experiment = c.experiment and s.metric = c.metric and s.model is not distinct from c.model
    and s.hardware is not distinct from c.hardware and s.topology is not distinct from c.topology
    and s.input_bucket is not distinct from c.input_bucket and s.temperature_bucket is not distinct from c.temperature_bucket
    and s.tenant is not distinct from c.tenant
