-- Time per output token by the length of a request's context at its end, in blocks of $block_s seconds: known only after treatment. $names
-- are the buckets' names, $edges where they begin.
select
    model, hardware, topology, temperature_bucket, arm, $names[1 + len(list_filter($edges, lambda edge: edge <= context_tokens))] as bucket,
    time_bucket(to_seconds($block_s), started_at) as block_started_at, count(*)::double as n, sum(num) as num, sum(den) as den,
    sum(num * num) as num_sq, sum(den * den) as den_sq, sum(num * den) as num_den
from (
    select *, prompt_tokens + output_tokens as context_tokens, decode_s as num, (output_tokens - 1)::double as den
    from marked
    where prompt_tokens is not null and output_tokens > 1 and decode_s is not null and arm is not null
)
group by all
order by all
