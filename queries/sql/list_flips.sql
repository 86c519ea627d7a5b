-- Changes of state and advice to widen, newest first. A filter that is null takes all; `state` is the one after.
select * from flips
where ($flip_id::varchar is null or flip_id = $flip_id) and ($lever::varchar is null or lever = $lever)
    and ($policy::varchar is null or policy = $policy) and ($state::varchar is null or state_after = $state)
    and ($action::varchar is null or action = $action)
    and ($since::timestamptz is null or decided_at >= $since) and ($until::timestamptz is null or decided_at < $until)
order by decided_at desc, flip_id limit $limit
