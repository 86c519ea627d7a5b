-- What became of everything received, all senders and minutes together, by signal.
select
    signal, sum(received)::bigint as received, sum(stored)::bigint as stored, sum(duplicate)::bigint as duplicate,
    sum(rejected)::bigint as rejected, sum(dropped)::bigint as dropped
from ingest_entries
group by signal
order by signal
