with rows as not materialized (select outcome
from requests),
counted as (select count(*) as requests,
    sum("error_rate:num") as "error_rate:num",
    count("error_rate:num") as "error_rate:n",
    count("error_rate:known") as "error_rate:known"
from (select case when outcome is not null and (outcome != 'aborted') then (outcome == 'error')::double end as "error_rate:num",
    case when outcome is not null then 1 end as "error_rate:known"
from rows) group by all),
plain as (select *,
    "error_rate:num" / nullif("error_rate:n",
    0) as "error_rate:value",
    'span' as "error_rate:said"
from counted) select plain.requests,
    plain."error_rate:value" as "error_rate",
    plain."error_rate:n" as "error_rate_n",
    plain."error_rate:known" / nullif(plain.requests,
    0) as "error_rate_coverage",
    case when plain."error_rate:n" > 0 then plain."error_rate:said" end as "error_rate_provenance"
from plain order by plain.requests desc
