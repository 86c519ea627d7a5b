-- The scores of levers' settings, and of the original, by time; an original that names no lever stands for each. A score whose square is no
-- number is none.
select evaluated_at, suite, kind, model, lever, setting, run_id, score, better, temperature
from evaluations
where evaluated_at > $since and evaluated_at <= $until and setting is not null and abs(score) < 1e100
    and (list_contains($levers::varchar[], lever) or (lever is null and setting = 'original'))
order by evaluated_at, evaluation_id
