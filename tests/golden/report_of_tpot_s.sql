with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(decode_s::double) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) / nullif(sum(output_tokens::double - 1) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)),
0) as tpot_s,
    quantile_cont(tpot_s::double,
    0.5) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as tpot_s_p50,
    quantile_cont(tpot_s::double,
    0.95) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as tpot_s_p95,
    quantile_cont(tpot_s::double,
    0.99) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as tpot_s_p99,
    count(*) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as tpot_s_n,
    count(*) filter (where decode_s is not null and output_tokens is not null) / nullif(count(*),
0) as tpot_s_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['decode_s'],
    provenance['output_tokens']])) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2))))),
'+'),
'') as tpot_s_provenance
from base group by all) select *
from plain order by requests desc
