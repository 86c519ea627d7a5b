-- The names analysts use; sealed parts join these views (store.py rewrites them when a part is sealed).
create view spans as select * from spans_hot;
create view requests as select * from requests_hot;

-- received = stored + duplicate + rejected + dropped + pending, per sender, signal and minute of arrival.
create view ingest_ledger as
with reason_counts as (
    select sender, signal, minute, entry.key as reason, sum(entry.value)::bigint as spans
    from (select sender, signal, minute, unnest(map_entries(reasons)) as entry from ingest_entries)
    group by all
),
reason_maps as (
    select sender, signal, minute, map_from_entries(list((reason, spans) order by reason)) as reasons
    from reason_counts
    group by all
)
select
    sender, signal, minute,
    sum(received)::bigint as received, sum(stored)::bigint as stored, sum(duplicate)::bigint as duplicate,
    sum(rejected)::bigint as rejected, sum(dropped)::bigint as dropped, sum(pending)::bigint as pending, sum(late)::bigint as late,
    coalesce(any_value(reason_maps.reasons), map {}) as reasons
from ingest_entries
left join reason_maps using (sender, signal, minute)
group by sender, signal, minute;
