-- What became of what each sender sent, all minutes together, with why; of one sender where $sender is given.
with chosen as (
    select * from ingest_entries where $sender::varchar is null or sender = $sender
),
reason_counts as (
    select sender, signal, entry.key as reason, sum(entry.value)::bigint as items
    from (select sender, signal, unnest(map_entries(reasons)) as entry from chosen)
    group by all
),
reason_lists as (
    select sender, signal, list({reason: reason, items: items} order by items desc, reason) as reasons
    from reason_counts
    group by all
)
select
    sender, signal,
    sum(received)::bigint as received, sum(stored)::bigint as stored, sum(duplicate)::bigint as duplicate,
    sum(rejected)::bigint as rejected, sum(dropped)::bigint as dropped, sum(late)::bigint as late,
    coalesce(any_value(reason_lists.reasons), []) as reasons
from chosen
left join reason_lists using (sender, signal)
group by sender, signal
order by sender, signal
