-- title: Acknowledged against stored
-- answers: Whether what was acknowledged is there: the ledger's spans of each sender against the rows that the table holds from the same
--   minutes, and what became of the rest.
-- group: Data
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- column sender text: who sent
-- column received count: spans acknowledged
-- column stored count: new ones, as the ledger says
-- column duplicate count: that were there before
-- column rejected count: that no row can be made of
-- column dropped count: that are not wanted
-- column pending count: not yet loaded
-- column in_table count: rows of the table that arrived in these minutes
-- column difference count: ledger less table; above 0 where retention dropped rows, or where rows are lost
with said as (
    select
        sender, sum(received)::bigint as received, sum(stored)::bigint as stored, sum(duplicate)::bigint as duplicate,
        sum(rejected)::bigint as rejected, sum(dropped)::bigint as dropped, sum(pending)::bigint as pending
    from ingest_ledger
    where signal = 'traces' and minute >= date_trunc('minute', $since::timestamptz) and minute < date_trunc('minute', $until::timestamptz)
    group by sender
), held as (
    select sender, count(*) as in_table
    from spans
    where received_at >= date_trunc('minute', $since::timestamptz) and received_at < date_trunc('minute', $until::timestamptz)
    group by sender
)
select
    coalesce(s.sender, h.sender) as sender, received, stored, duplicate, rejected, dropped, pending, coalesce(in_table, 0) as in_table,
    stored - coalesce(in_table, 0) as difference
from said s
full join held h using (sender)
order by abs(difference) desc nulls last, received desc
limit 1000
