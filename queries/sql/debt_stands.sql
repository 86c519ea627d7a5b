-- The times from $since to $until in which a stream was recommended off, of policies that notify: from each recommendation to the stream's next flip,
-- or, where the policy was removed, renamed or given another lever, to the last block that it judged.
with told as (
    select
        policy, lever, segment, state_after, action, severity, decided_at as since,
        lead(decided_at) over (partition by policy, lever, segment order by decided_at, flip_id) as ended_at
    from flips
    where decided_at < $until and not coalesce(shadow, false) and not (state_before = state_after and state_after <> 'off_recommended')
), judged as (
    select policy, lever, segment, block_ended_at from current_verdicts anti join policies using (policy, lever)
), stood as (
    select told.*, coalesce(ended_at, least(j.block_ended_at, $until::timestamptz)) as until
    from told left join judged j using (policy, lever, segment)
)
select policy, lever, segment, action, severity, greatest(since, $since::timestamptz) as since, until
from stood
where state_after = 'off_recommended' and action is distinct from 'hold' and until > $since and until > since
order by policy, lever, segment, since
