with rows as not materialized (select outcome
from requests),
counted as (select count(*) as requests,
    sum("abort_rate:num") as "abort_rate:num",
    count("abort_rate:num") as "abort_rate:n",
    count("abort_rate:num") as "abort_rate:known"
from (select (outcome == 'aborted')::double as "abort_rate:num"
from rows) group by all),
plain as (select *,
    "abort_rate:num" / nullif("abort_rate:n",
    0) as "abort_rate:value",
    'span' as "abort_rate:said"
from counted) select plain.requests,
    plain."abort_rate:value" as "abort_rate",
    plain."abort_rate:n" as "abort_rate_n",
    plain."abort_rate:known" / nullif(plain.requests,
    0) as "abort_rate_coverage",
    case when plain."abort_rate:n" > 0 then plain."abort_rate:said" end as "abort_rate_provenance"
from plain order by plain.requests desc
