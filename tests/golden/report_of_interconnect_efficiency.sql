with base as (select *
from requests),
plain as (select count(*) as requests,
    sum(kv_transfer_bytes::double) filter (where kv_transfer_bytes is not null and kv_transfer_s is not null and link_peak_bytes_per_s is not null and ((kv_transfer_s::double > 0) and (link_peak_bytes_per_s::double > 0))) / nullif(sum(kv_transfer_s::double * link_peak_bytes_per_s::double) filter (where kv_transfer_bytes is not null and kv_transfer_s is not null and link_peak_bytes_per_s is not null and ((kv_transfer_s::double > 0) and (link_peak_bytes_per_s::double > 0))),
0) as interconnect_efficiency,
    count(*) filter (where kv_transfer_bytes is not null and kv_transfer_s is not null and link_peak_bytes_per_s is not null and ((kv_transfer_s::double > 0) and (link_peak_bytes_per_s::double > 0))) as interconnect_efficiency_n,
    count(*) filter (where kv_transfer_bytes is not null and kv_transfer_s is not null and link_peak_bytes_per_s is not null) / nullif(count(*),
0) as interconnect_efficiency_coverage,
    nullif(array_to_string(list_sort(list_distinct(flatten(list(distinct list_distinct([provenance['kv_transfer_bytes'],
    provenance['kv_transfer_s'],
    provenance['link_peak_bytes_per_s']])) filter (where kv_transfer_bytes is not null and kv_transfer_s is not null and link_peak_bytes_per_s is not null and ((kv_transfer_s::double > 0) and (link_peak_bytes_per_s::double > 0)))))),
'+'),
'') as interconnect_efficiency_provenance
from base group by all) select *
from plain order by requests desc
