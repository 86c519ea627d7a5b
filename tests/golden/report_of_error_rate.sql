with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(cast(outcome == 'error' as double)) filter (where outcome is not null and (outcome != 'aborted')) / nullif(count(*) filter (where outcome is not null and (outcome != 'aborted')),
0) as error_rate,
    count(*) filter (where outcome is not null and (outcome != 'aborted')) as error_rate_n,
    count(*) filter (where outcome is not null) / nullif(count(*),
0) as error_rate_coverage,
    case when count(*) filter (where outcome is not null and (outcome != 'aborted')) > 0 then 'span' end as error_rate_provenance
from base group by all) select *
from plain order by requests desc
