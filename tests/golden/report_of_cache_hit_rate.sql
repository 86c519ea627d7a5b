with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(cast(cached_tokens::double > 0 as double)) filter (where cached_tokens is not null) / nullif(count(*) filter (where cached_tokens is not null),
0) as cache_hit_rate,
    count(*) filter (where cached_tokens is not null) as cache_hit_rate_n,
    count(*) filter (where cached_tokens is not null) / nullif(count(*),
0) as cache_hit_rate_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['cached_tokens']])) filter (where cached_tokens is not null)))),
'+'),
'') as cache_hit_rate_provenance
from base group by all) select *
from plain order by requests desc
