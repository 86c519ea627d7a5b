with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(accepted_tokens::double + verify_steps::double) filter (where accepted_tokens is not null and verify_steps is not null and (verify_steps::double > 0)) / nullif(sum(verify_steps::double) filter (where accepted_tokens is not null and verify_steps is not null and (verify_steps::double > 0)),
0) as acceptance_length,
    count(*) filter (where accepted_tokens is not null and verify_steps is not null and (verify_steps::double > 0)) as acceptance_length_n,
    count(*) filter (where accepted_tokens is not null and verify_steps is not null) / nullif(count(*),
0) as acceptance_length_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['accepted_tokens'],
    provenance['verify_steps']])) filter (where accepted_tokens is not null and verify_steps is not null and (verify_steps::double > 0))))),
'+'),
'') as acceptance_length_provenance
from base group by all) select *
from plain order by requests desc
