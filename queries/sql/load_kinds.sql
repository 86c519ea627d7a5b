-- What became of each body's spans.
select
    arrival,
    count(*) as received,
    count(*) filter (where is_new) as stored,
    count(*) filter (where differs) as differing
from staged
group by arrival
