-- The hours, days and weeks that have cells, those that were summed up apart from those that were not.
select tier, state = 'open' as is_open, list(started_at order by started_at) as begins from cell_periods group by all
