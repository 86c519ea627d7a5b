with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(cached_tokens::double) filter (where cached_tokens is not null and prefill_s is not null and prompt_tokens is not null and (prompt_tokens::double > cached_tokens::double)) / nullif(count(*) filter (where cached_tokens is not null and prefill_s is not null and prompt_tokens is not null and (prompt_tokens::double > cached_tokens::double)),
0) * sum(prefill_s::double) filter (where cached_tokens is not null and prefill_s is not null and prompt_tokens is not null and (prompt_tokens::double > cached_tokens::double)) / nullif(sum(prompt_tokens::double - cached_tokens::double) filter (where cached_tokens is not null and prefill_s is not null and prompt_tokens is not null and (prompt_tokens::double > cached_tokens::double)),
0) as prefill_avoided_s,
    count(*) filter (where cached_tokens is not null and prefill_s is not null and prompt_tokens is not null and (prompt_tokens::double > cached_tokens::double)) as prefill_avoided_s_n,
    count(*) filter (where cached_tokens is not null and prefill_s is not null and prompt_tokens is not null) / nullif(count(*),
0) as prefill_avoided_s_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['cached_tokens'],
    provenance['prefill_s'],
    provenance['prompt_tokens']])) filter (where cached_tokens is not null and prefill_s is not null and prompt_tokens is not null and (prompt_tokens::double > cached_tokens::double))))),
'+'),
'') as prefill_avoided_s_provenance
from base group by all) select *
from plain order by requests desc
