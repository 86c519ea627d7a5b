-- Flips that fit (what is null takes all), newest first, `flips` of them after the first `after`: each with when its stream's next flip came, and
-- how many fit in all. `keys` is JSON text of segment keys, "" for one that a segment lacks; segments of `topology_levers` have no topology.
with fitting as (
    select *, count(*) over () as fitting_n from flips
    where ($flip_id::varchar is null or flip_id = $flip_id) and ($lever::varchar is null or lever = $lever)
        and ($state::varchar is null or state_after = $state) and ($severity::varchar is null or severity = $severity)
        and ($since::timestamptz is null or decided_at >= $since::timestamptz)
        and ($until::timestamptz is null or decided_at < $until::timestamptz)
        and len(list_filter(json_keys($keys::varchar), lambda key:
            coalesce(json_extract_string(segment, '$.' || key), '') <> json_extract_string($keys::varchar, '$.' || key)
            and not (key = 'topology' and list_contains($topology_levers::varchar[], lever)))) = 0
    order by decided_at desc, flip_id limit $flips::bigint offset $after::bigint
)
select fitting.*, (
    select min(later.decided_at) from flips later
    where later.policy = fitting.policy and later.lever = fitting.lever and later.segment = fitting.segment
        and later.decided_at > fitting.decided_at and later.action is distinct from 'widen'
) as followed_at
from fitting order by decided_at desc, flip_id
