with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(cached_tokens::double) filter (where cached_tokens is not null and prompt_tokens is not null and (prompt_tokens::double > 0)) / nullif(sum(prompt_tokens::double) filter (where cached_tokens is not null and prompt_tokens is not null and (prompt_tokens::double > 0)),
0) as skipped_token_ratio,
    count(*) filter (where cached_tokens is not null and prompt_tokens is not null and (prompt_tokens::double > 0)) as skipped_token_ratio_n,
    count(*) filter (where cached_tokens is not null and prompt_tokens is not null) / nullif(count(*),
0) as skipped_token_ratio_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['cached_tokens'],
    provenance['prompt_tokens']])) filter (where cached_tokens is not null and prompt_tokens is not null and (prompt_tokens::double > 0))))),
'+'),
'') as skipped_token_ratio_provenance
from base group by all) select *
from plain order by requests desc
