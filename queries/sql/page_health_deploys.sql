-- The newest deploys: where another version of an engine took over, or the first one was seen.
select model, hardware, engine, engine_version, since, is_change
from deploys
order by since desc, model, hardware, engine
limit 20
