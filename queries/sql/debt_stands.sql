-- The times from $since to $until in which a stream was recommended off, of policies that notify: from each recommendation to the stream's next flip.
with told as (
    select
        policy, lever, segment, state_after, action, severity, decided_at as since,
        lead(decided_at, 1, $until::timestamptz) over (partition by policy, lever, segment order by decided_at, flip_id) as until
    from flips
    where decided_at < $until and not coalesce(shadow, false) and not (state_before = state_after and state_after <> 'off_recommended')
)
select policy, lever, segment, action, severity, greatest(since, $since::timestamptz) as since, until
from told
where state_after = 'off_recommended' and until > $since and until > since
order by policy, lever, segment, since
