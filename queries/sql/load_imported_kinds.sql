-- What became of each body's requests.
select arrival, count(*) as received, count(*) filter (where is_new) as stored from staged_imported group by arrival
