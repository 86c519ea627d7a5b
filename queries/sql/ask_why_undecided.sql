-- title: Why streams are undecided
-- answers: Why a lever is neither kept nor switched off: streams that are insufficient, frozen or conflicted, by the reason, with the
--   largest of them.
-- group: Decisions
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- column lever text: which lever
-- column verdict text: insufficient, frozen or conflicted
-- column reason_code text: why, in a word
-- column streams count: that stand so
-- column example_segment text: one of them, as JSON
-- column example_reason text: its reason, in numbers
-- column newest_at moment: when the newest of them was decided
select
    lever, verdict, reason_code, count(*) as streams, arg_max(segment, decided_at) as example_segment,
    arg_max(reason, decided_at) as example_reason, max(decided_at) as newest_at
from current_verdicts
where verdict in ('insufficient', 'frozen', 'conflicted') and decided_at >= $since::timestamptz and decided_at < $until::timestamptz
group by lever, verdict, reason_code
order by streams desc, lever
