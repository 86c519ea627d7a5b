-- title: Quality against its own noise
-- answers: Whether a lever made answers worse: mean score by setting against the original of the same suite, beside the range within
--   which two repeats of the original differ.
-- group: Decisions
-- param since moment 30d: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column suite text: the suite
-- column kind text: perplexity, public_benchmark or product
-- column model text: the model
-- column lever text: which lever
-- column setting text: its setting; original is without it
-- column repeats count: runs
-- column score number: mean over runs, in the suite's own unit
-- column drop number: by how much it is worse than the original, in that unit
-- column noise number: by how much two repeats of the original differ, 19 times of 20; null below five
-- column newest_at moment: when the newest run was
-- column age_hours hours: of that run, at the end of the period
with runs as (
    select suite, kind, model, lever, setting, any_value(better) as better, avg(score) as score, max(evaluated_at) as newest_at
    from evaluations
    where evaluated_at >= $since::timestamptz and evaluated_at < $until::timestamptz and ($model::varchar is null or model = $model)
    group by suite, kind, model, lever, setting, coalesce(run_id || '/' || coalesce(repeat, 0), evaluation_id)
), summed as (
    select
        suite, kind, model, lever, setting, any_value(better) as better, count(*) as repeats, avg(score) as score,
        stddev_samp(score) as deviation, max(newest_at) as newest_at
    from runs
    group by all
)
select
    s.suite, s.kind, s.model, s.lever, s.setting, s.repeats, s.score,
    case when s.better = 'lower' then s.score - o.score else o.score - s.score end as drop,
    case when o.repeats >= 5 then 1.96 * sqrt(2) * o.deviation end as noise, s.newest_at,
    epoch($until::timestamptz - s.newest_at) / 3600 as age_hours
from summed s
left join (from summed where setting = 'original') o on o.suite = s.suite and o.model is not distinct from s.model
order by s.suite, s.model, s.lever nulls first, s.setting
limit 1000
