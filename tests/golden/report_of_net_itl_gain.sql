with base as (select *
from requests),
plain as (select count(*) as requests
from base group by all),
arms as (select time_bucket(to_seconds(300),
started_at) as block,
    input_bucket,
    temperature_bucket,
    coalesce(arms['speculation'],
    case when lower(levers['speculation']) in ('off',
    'none',
    '0',
    'disabled',
    'false') then 'disabled_in_place' when levers['speculation'] is not null then 'treated' end) as arm,
    count(*) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as n,
    sum(decode_s) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as busy_s,
    sum(output_tokens::double - 1) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as gaps,
    avg(ttft_s) as mean_ttft_s
from base group by all),
pairs as (select t.n,
    t.busy_s + t.n * greatest(0,
    coalesce(t.mean_ttft_s - c.mean_ttft_s,
    0)) as net_s,
    t.gaps,
    t.gaps * c.busy_s / nullif(c.gaps,
    0) as control_s,
    c.gaps > 0 as is_matched
from (select *
from arms where arm = 'treated' and gaps > 0) t left join (select *
from arms where arm = 'control') c on t.block is not distinct
from c.block and t.input_bucket is not distinct
from c.input_bucket and t.temperature_bucket is not distinct
from c.temperature_bucket),
treated as (select sum(n) as treated_n,
    sum(n) filter (where is_matched) as matched_n,
    sum(net_s) / sum(gaps) as treated_itl_s,
    1 - sum(net_s) filter (where is_matched) / sum(control_s) filter (where is_matched) as gain
from pairs group by all),
every_request as (select sum(decode_s) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) / sum(output_tokens::double - 1) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as every_itl_s,
    count(*) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2)) as n,
    count(*) filter (where decode_s is not null and output_tokens is not null) / nullif(count(*),
0) as coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['decode_s'],
    provenance['output_tokens']])) filter (where decode_s is not null and output_tokens is not null and (output_tokens::double >= 2))))),
'+'),
'') as net_itl_gain_provenance
from base group by all),
net as (select every_request.* rename (net_itl_gain_provenance as said),
gain,
    treated_n,
    matched_n,
    treated_itl_s,
    case when matched_n > 0 then 'control' when n > 0 then 'tpot' end as net_itl_basis
from every_request left join treated on true),
joined as (select plain.*,
    net.gain as net_itl_gain,
    coalesce(net.matched_n,
    0)::bigint as net_itl_gain_n,
    net.matched_n / nullif(net.treated_n,
    0) as net_itl_gain_coverage,
    case when net.gain is not null then 'derived' end as net_itl_gain_provenance,
    net.net_itl_basis
from plain left join net on true) select requests,
    "net_itl_gain",
    "net_itl_gain_n",
    "net_itl_gain_coverage",
    "net_itl_gain_provenance",
    net_itl_basis
from joined order by requests desc
