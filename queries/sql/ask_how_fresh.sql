-- title: How fresh the data is
-- answers: How old what everything else is told from is: by sender, its newest span and when it was last heard.
-- group: Data
-- param since moment 7d: senders that were heard since; a time, or an age before now
-- param until moment now: up to when, exclusive
-- column sender text: who sends
-- column newest_span_at moment: the newest end of a span that it sent
-- column heard_at moment: when it was last heard
-- column behind_s s: by how much its newest span is older than the end of the period
-- column silent_s s: for how long it had not been heard by then
select
    sender, ended_at as newest_span_at, seen_at as heard_at, epoch($until::timestamptz - ended_at) as behind_s,
    epoch($until::timestamptz - seen_at) as silent_s
from watermarks
where seen_at >= $since::timestamptz
order by behind_s desc
limit 1000
