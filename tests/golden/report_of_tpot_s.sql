with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(cast(decode_s::double as double)) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) / nullif(sum(cast(output_tokens::double - 1 as double)) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)),
0) as tpot_s,
    count(*) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as tpot_s_n,
    count(*) filter (where decode_s is not null and output_tokens is not null) / nullif(count(*),
0) as tpot_s_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['decode_s'],
    provenance['output_tokens']])) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2))))),
'+'),
'') as tpot_s_provenance
from base group by all) select *
from plain order by requests desc
