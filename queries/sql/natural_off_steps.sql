-- Requests that drafted, and those for which an engine that can draft did not: it drafted nothing, or was switched off in place.
select *, if(arm = 'treated' and draft_tokens > 0, 'treated', 'without') as side
from marked
where (arm = 'treated' and draft_tokens is not null) or arm = 'disabled_in_place'
