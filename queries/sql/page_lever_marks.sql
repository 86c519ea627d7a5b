-- What was set of a lever, what was said of it and which engine versions came, the oldest first: settings in use (also the one that stood when
-- the period began), flips of its streams, deploys where it is in use. `setting` is the newer one, `before` the one it replaced.
with settings as (
    select
        'setting' as kind, scope, since as noted_at, setting, lag(setting) over of_scope as "before",
        coalesce(lead(since) over of_scope, $until::timestamptz) as ended_at
    from settings_in_use
    where lever = $lever and since < $until::timestamptz
    window of_scope as (partition by scope order by since)
),
used as (
    select distinct scope ->> '$.model' as model, scope ->> '$.hardware' as hardware from settings_in_use where lever = $lever
    union
    select distinct segment ->> '$.model', segment ->> '$.hardware' from current_verdicts where lever = $lever
),
marks as (
    select kind, scope, noted_at, setting, "before" from settings where ended_at > $since::timestamptz
    union all
    select 'flip', segment, decided_at, state_after, state_before from flips
    where lever = $lever and decided_at >= $since::timestamptz and decided_at < $until::timestamptz
    union all
    select
        'deploy', json_merge_patch(json_object('model', d.model, 'hardware', d.hardware), '{}')::varchar, d.since,
        d.engine || ' ' || d.engine_version, null
    from deploys d semi join used u on u.model is not distinct from d.model and u.hardware is not distinct from d.hardware
    where d.is_change and d.since >= $since::timestamptz and d.since < $until::timestamptz
)
select *
from marks
where ($model::varchar is null or coalesce(scope ->> '$.model', '') = $model)
    and ($hardware::varchar is null or coalesce(scope ->> '$.hardware', '') = $hardware)
order by noted_at, kind, scope
limit 2000
