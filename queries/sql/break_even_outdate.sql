-- Rows of earlier epochs than those that came in hold no more, whatever ended them: other edges of buckets, or a long silence.
update break_even set state = 'stale', pays_edge = null, loses_edge = null, point = null, line_point = null, note = 'ended; before: ' || note
where state <> 'stale' and exists (
    select 1 from incoming i
    where i.lever = break_even.lever and i.segment = break_even.segment and i."key" = break_even."key" and i.since > break_even.since
)
