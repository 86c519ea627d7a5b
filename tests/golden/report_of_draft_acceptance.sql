with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(accepted_tokens::double) filter (where accepted_tokens is not null and draft_tokens is not null and (draft_tokens::double > 0)) / nullif(sum(draft_tokens::double) filter (where accepted_tokens is not null and draft_tokens is not null and (draft_tokens::double > 0)),
0) as draft_acceptance,
    count(*) filter (where accepted_tokens is not null and draft_tokens is not null and (draft_tokens::double > 0)) as draft_acceptance_n,
    count(*) filter (where accepted_tokens is not null and draft_tokens is not null) / nullif(count(*),
0) as draft_acceptance_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['accepted_tokens'],
    provenance['draft_tokens']])) filter (where accepted_tokens is not null and draft_tokens is not null and (draft_tokens::double > 0))))),
'+'),
'') as draft_acceptance_provenance
from base group by all) select *
from plain order by requests desc
