-- title: Flips, and how long they stood
-- answers: What was recommended when, and for how long it stood until the next flip of the same stream; one that flips back and forth has
--   many short rows.
-- group: Decisions
-- param since moment 7d: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param lever text null: this lever alone; every one where it is not given
-- column decided_at moment: when
-- column lever text: which lever
-- column policy text: by which policy
-- column segment text: of which traffic, as JSON
-- column state_before text: on, off_recommended, off, probation
-- column state_after text: the same
-- column action text: what was advised
-- column stood_hours hours: until the stream's next flip; null where it still stands
-- column flips_in_period count: of this stream
-- column reason text: in numbers
select
    decided_at, lever, policy, segment, state_before, state_after, action,
    epoch(lead(decided_at) over stream - decided_at) / 3600 as stood_hours,
    count(*) over (partition by policy, lever, segment) as flips_in_period, reason
from flips
where decided_at >= $since::timestamptz and decided_at < $until::timestamptz and ($lever::varchar is null or lever = $lever)
window stream as (partition by policy, lever, segment order by decided_at)
order by decided_at desc
limit 1000
