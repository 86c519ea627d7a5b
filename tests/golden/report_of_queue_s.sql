with base as (select *
from requests),
plain as (select count(*) as requests,
    quantile_cont(queue_s::double,
    0.5) filter (where queue_s is not null) as queue_s_p50,
    quantile_cont(queue_s::double,
    0.95) filter (where queue_s is not null) as queue_s_p95,
    quantile_cont(queue_s::double,
    0.99) filter (where queue_s is not null) as queue_s_p99,
    count(*) filter (where queue_s is not null) as queue_s_n,
    count(*) filter (where queue_s is not null) / nullif(count(*),
0) as queue_s_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['queue_s']])) filter (where queue_s is not null)))),
'+'),
'') as queue_s_provenance
from base group by all) select *
from plain order by requests desc
