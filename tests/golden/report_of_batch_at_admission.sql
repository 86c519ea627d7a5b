with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(batch_at_admission::double) filter (where batch_at_admission is not null) / nullif(count(*) filter (where batch_at_admission is not null),
0) as batch_at_admission,
    count(*) filter (where batch_at_admission is not null) as batch_at_admission_n,
    count(*) filter (where batch_at_admission is not null) / nullif(count(*),
0) as batch_at_admission_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['batch_at_admission']])) filter (where batch_at_admission is not null)))),
'+'),
'') as batch_at_admission_provenance
from base group by all) select *
from plain order by requests desc
