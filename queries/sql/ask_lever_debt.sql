-- title: Levers left on against advice
-- answers: What was recommended off and went on all the same: by stream, for how long, and how many treated requests and blocks that
--   were.
-- group: Decisions
-- param since moment 7d: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- column lever text: which lever
-- column policy text: by which policy
-- column segment text: of which traffic, as JSON
-- column recommended_at moment: since when it stands recommended off, within the period
-- column until_at moment: until its next flip, or the end of the period
-- column stood_hours hours: between the two
-- column treated_requests count: that had the lever on meanwhile
-- column treated_hours hours: in blocks of 300 s that had such requests
with turned as (
    select
        policy, lever, segment, state_after, decided_at as recommended_at,
        coalesce(lead(decided_at) over (partition by policy, lever, segment order by decided_at), $until::timestamptz) as until_at
    from flips
    where decided_at < $until::timestamptz
), stood as (
    select * replace (greatest(recommended_at, $since::timestamptz) as recommended_at)
    from turned
    where state_after = 'off_recommended' and until_at > $since::timestamptz
), treated as (
    select lever, segment, block_started_at, sum(n)::bigint as n
    from cells
    where metric = 'requests' and arm = 'treated' and block_started_at >= $since::timestamptz and block_started_at < $until::timestamptz
        and lever in (select lever from stood) and replica is not null
    group by all
)
select
    s.lever, policy, s.segment, recommended_at, until_at, epoch(until_at - recommended_at) / 3600 as stood_hours,
    coalesce(sum(n), 0)::bigint as treated_requests, count(n) filter (n > 0) * 300 / 3600 as treated_hours
from stood s
left join treated t
    on t.lever = s.lever and t.segment = s.segment and t.block_started_at >= s.recommended_at and t.block_started_at < s.until_at
group by all
order by treated_requests desc, stood_hours desc
limit 1000
