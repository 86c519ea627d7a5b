with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(cast(outcome == 'aborted' as double)) filter (where outcome is not null) / nullif(count(*) filter (where outcome is not null),
0) as abort_rate,
    count(*) filter (where outcome is not null) as abort_rate_n,
    count(*) filter (where outcome is not null) / nullif(count(*),
0) as abort_rate_coverage,
    case when count(*) filter (where outcome is not null) > 0 then 'span' end as abort_rate_provenance
from base group by all) select *
from plain order by requests desc
