-- The scores of levers' settings, and of the original, by time; an original that names no lever stands for each.
select evaluated_at, suite, kind, model, lever, setting, run_id, score, better, temperature
from evaluations
where evaluated_at > $since and evaluated_at <= $until and setting is not null
    and (list_contains($levers::varchar[], lever) or (lever is null and setting = 'original'))
order by evaluated_at, evaluation_id
