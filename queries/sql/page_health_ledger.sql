-- What became of what each sender sent, all minutes together, in items. What is acknowledged and not loaded yet is in no row.
select
    sender, signal, sum(received)::bigint as received, sum(stored)::bigint as stored, sum(duplicate)::bigint as duplicate,
    sum(rejected)::bigint as rejected, sum(dropped)::bigint as dropped, sum(late)::bigint as late, max(minute) as newest_minute
from ingest_ledger
group by sender, signal
order by sum(rejected) + sum(dropped) desc, sender, signal
