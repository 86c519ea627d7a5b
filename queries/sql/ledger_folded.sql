-- Rows of the ledger of one stretch of time summed, one a sender, signal and $unit (minute or day): nothing of the sums is lost.
create or replace temp table folded as
with taken as (
    select * replace (date_trunc($unit, minute) as minute)
    from ingest_entries
    where minute >= $since and minute < $until
),
reason_counts as (
    select sender, signal, minute, entry.key as reason, sum(entry.value)::bigint as count
    from (select sender, signal, minute, unnest(map_entries(reasons)) as entry from taken)
    group by all
),
reason_maps as (
    select sender, signal, minute, map_from_entries(list((reason, count) order by reason)) as reasons
    from reason_counts
    group by all
)
select
    sender, signal, minute,
    sum(received)::bigint as received, sum(stored)::bigint as stored, sum(duplicate)::bigint as duplicate,
    sum(rejected)::bigint as rejected, sum(dropped)::bigint as dropped, sum(pending)::bigint as pending, sum(late)::bigint as late,
    coalesce(any_value(reason_maps.reasons), map {}) as reasons
from taken
left join reason_maps using (sender, signal, minute)
group by sender, signal, minute
