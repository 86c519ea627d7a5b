with base as (select *
from requests),
plain as (select count(*) as requests,
    quantile_cont(ttft_s::double,
    0.5) filter (where ttft_s is not null) as ttft_s_p50,
    quantile_cont(ttft_s::double,
    0.95) filter (where ttft_s is not null) as ttft_s_p95,
    quantile_cont(ttft_s::double,
    0.99) filter (where ttft_s is not null) as ttft_s_p99,
    count(*) filter (where ttft_s is not null) as ttft_s_n,
    count(*) filter (where ttft_s is not null) / nullif(count(*),
0) as ttft_s_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['ttft_s']])) filter (where ttft_s is not null)))),
'+'),
'') as ttft_s_provenance
from base group by all) select *
from plain order by requests desc
