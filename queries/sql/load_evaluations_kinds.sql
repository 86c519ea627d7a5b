-- What became of each body's evaluations.
select arrival, count(*) as received, count(*) filter (where is_new) as stored from staged_evaluations group by arrival
